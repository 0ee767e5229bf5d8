"""What every command is made of: the transaction it owns, the rows it reads and writes, what it removes."""
