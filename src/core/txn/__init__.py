"""The commit: optimistic transactions, conflicts, and an honest outcome."""
