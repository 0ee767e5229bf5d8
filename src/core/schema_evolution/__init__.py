"""How a table's schema changes: columns added, renamed, dropped, altered, and merged with those of new data."""
