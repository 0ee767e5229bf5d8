"""The only door to Spark's JVM: the gateway, calls back from it, its plans, catalog, types and errors."""
