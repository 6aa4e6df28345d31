"""Benchmarks: our worker beside its peers, in one run on one machine."""
