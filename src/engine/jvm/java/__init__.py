"""Java sources that are compiled in the JVM of the session (`connection.compiled`)."""
