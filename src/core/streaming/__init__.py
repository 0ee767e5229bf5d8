"""Streaming reads of a table: offsets, limits, and the files of each batch. It needs no Spark."""
