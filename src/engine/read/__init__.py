"""Reads the rows of tables as DataFrames: selects the files and the route by which Spark reads them."""
