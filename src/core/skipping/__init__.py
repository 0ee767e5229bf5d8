"""Data skipping: statistics of data files, and the files that a predicate excludes."""
