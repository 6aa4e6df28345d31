"""clipboss: clips, posters and transcripts from jobs that sit in PostgreSQL."""

__version__ = "0.1.0"
