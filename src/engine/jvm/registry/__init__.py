"""The registry of the internals of Spark and Py4J that tablelog uses, and of the methods that it replaces."""
