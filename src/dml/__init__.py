"""Commands: DataFrames in, committed actions out."""
