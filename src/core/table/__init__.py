"""Reading a table: snapshot, history, changes, and decisions that depend only on a snapshot."""
