"""MERGE: its clauses, their meaning, the search for matches, and the writing of files."""
