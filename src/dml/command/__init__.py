"""The parts shared by all commands: the transaction, reading and writing rows, removing rows and files."""
