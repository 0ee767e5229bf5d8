"""The surface that a PySpark user imports."""
