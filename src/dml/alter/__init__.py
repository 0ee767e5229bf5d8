"""Commands that change the definition of a table: create, columns, constraints, properties, features."""
