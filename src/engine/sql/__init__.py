"""Spark SQL expressions over a table: predicates, resolution, casts, generated values and checks of rows."""
