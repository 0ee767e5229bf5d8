"""Changes of a table's schema: adding, renaming, dropping, altering columns, and merging in the schema of new data."""
