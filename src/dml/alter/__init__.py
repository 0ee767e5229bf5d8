"""Commands that change what a table is: create, columns, constraints, properties, features."""
