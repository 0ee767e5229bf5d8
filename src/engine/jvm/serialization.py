"""Python objects as PySpark sends them to its workers."""


def pickled(value: object) -> bytes:
    """The object as bytes, by the pickler of PySpark, which takes functions and classes by value."""
    from pyspark import cloudpickle

    content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return content
