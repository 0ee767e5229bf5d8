"""The files of the log: from a listing to a replayed state, and the format of the files written after a commit."""
