"""Commands that change rows: write, overwrite, delete, update."""
