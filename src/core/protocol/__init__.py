"""What PROTOCOL.md says of bytes: actions, schema, values, statistics, features."""
