"""The formats of PROTOCOL.md: actions, schema, values, statistics, features."""
