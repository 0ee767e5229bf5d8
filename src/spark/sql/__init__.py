"""SQL on Delta tables: the statements that tablelog runs, and the tables that it gives to Spark's analyzer.

`run` is the way of a statement of `spark.sql`. Spark parses it. A statement that changes or describes a Delta table is
run by a handler of `statements.HANDLERS`, chosen by the class of the parsed plan; all else is left to Spark, whose
analyzer asks `session_tables` for Delta tables.
"""
