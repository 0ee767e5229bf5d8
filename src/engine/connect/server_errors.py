"""What a Spark Connect server says about an error: a failed task is one of its causes."""

from pyspark.errors import PySparkException


def said_by_server(error: BaseException) -> str:
    """The messages of an error of a server and of its causes; empty for other errors."""
    if not type(error).__module__.endswith("exceptions.connect"):
        return ""
    return f"{error}\n{getattr(error, 'getStackTrace', lambda: None)() or ''}"


def text_of(error: BaseException) -> str:
    """`str(error)`, with the causes of an error of a server."""
    return said_by_server(error) or str(error)


def lacks_delta_source(error: BaseException) -> bool:
    """Whether a server without a Delta source failed because a statement names a Delta table of its catalog."""
    if not isinstance(error, PySparkException) or error.getCondition() != "DATA_SOURCE_NOT_FOUND":
        return False
    return (error.getMessageParameters() or {}).get("provider", "").lower() == "delta"
