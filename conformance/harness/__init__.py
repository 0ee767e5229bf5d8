"""What checks use to race writers, to kill processes, and to make calls fail."""
