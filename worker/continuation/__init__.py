"""Long media: a job splits itself into pages that run on any machine, and puts together what they made."""
