"""Statistics of data files, and which files a predicate lets a reader skip."""
