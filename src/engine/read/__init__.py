"""A table's rows as DataFrames: which files are read, and by which route."""
