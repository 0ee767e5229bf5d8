"""The engine on a Spark Connect session, whose JVM is out of reach: public PySpark only (docs/decisions/0072).

`client` is the only file here that uses internals of PySpark, those of its Connect client.
"""
