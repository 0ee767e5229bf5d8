"""Storage access of the engine: Hadoop's client in the JVM, the files in a table's directory, Parquet footers."""
