"""The files of the log: from a listing to a replayed state, and the files written after a commit."""
