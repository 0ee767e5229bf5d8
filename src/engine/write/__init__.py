"""Writes DataFrames as data files of a table: the writer, its routes and the layout of files."""
