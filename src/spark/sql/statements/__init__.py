"""One file for each kind of statement: how it is run for Delta tables."""
