"""A table as its readers see it: snapshot, pruning, history."""
