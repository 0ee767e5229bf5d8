"""All that touches the plans and the JVM of Spark."""
