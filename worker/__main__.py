"""`python -m worker`, and the console script `clipboss`."""

from worker.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
