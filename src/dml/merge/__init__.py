"""MERGE: checks and resolves its clauses, finds the matching rows, and writes the files."""
