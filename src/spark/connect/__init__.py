"""What a user of a Spark Connect session gets: the methods that `enable` replaces, and what is refused by name."""
