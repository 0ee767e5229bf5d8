"""The commit: optimistic transactions, conflict detection, and the outcome of a commit."""
