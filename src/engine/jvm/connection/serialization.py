"""Serialization of Python objects for PySpark's workers."""


def pickled(value: object) -> bytes:
    """The object as bytes. PySpark's pickler serializes functions and classes by value."""
    from pyspark import cloudpickle

    content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return content
