"""A speech process that only finds windows, for engines elsewhere.

Run as `python -m worker.asr.finder_child OWNER_PID`.
"""

from worker.asr.finding import WindowFinder
from worker.asr.serving import serve

if __name__ == "__main__":
    serve(lambda still_at_it: {"find": WindowFinder(still_at_it).find})
