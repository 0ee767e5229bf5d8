"""All access to Spark's JVM: the gateway, callbacks, plans, the catalog, types and errors. No other package has any."""
