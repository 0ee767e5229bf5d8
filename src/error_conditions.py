"""The conditions that errors name: SQLSTATE, and the class of PySpark's that Delta raises with each.

`DELTA_*` are Delta's own (delta-spark 4.4.0), with its SQLSTATEs; `FAILED_READ_FILE` is Spark's; `TABLELOG_*` are for
what neither has a condition for.
Where Delta raises an error that PySpark has no class for, so that its users see a bare `Py4JJavaError`, the class is
`SparkRuntimeException`; for conflicts, and for storage, it is `PySparkException` itself.
"""

from typing import NamedTuple


class Condition(NamedTuple):
    """What is known of a condition; `raises` is a name in `pyspark.errors`."""

    sql_state: str
    raises: str


_BY_CLASS = {
    "AnalysisException": """
        DELTA_INVALID_LOGSTORE_CONF F0000
        DELTA_METADATA_MISMATCH 42KDG
        DELTA_MISSING_CHANGE_DATA KD002
        DELTA_OPERATION_NOT_ALLOWED 0AKDC
        DELTA_PATH_EXISTS 42K04
        DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS KD007
        DELTA_TABLE_NOT_FOUND 42P01
        DELTA_TIMESTAMP_INVALID 42816
        DELTA_VERSION_NOT_FOUND 22003
    """,
    "IllegalArgumentException": """
        DELTA_ILLEGAL_OPTION 42616
    """,
    "PySparkException": """
        DELTA_CONCURRENT_APPEND 2D521
        DELTA_CONCURRENT_DELETE_DELETE 2D521
        DELTA_CONCURRENT_DELETE_READ 2D521
        DELTA_CONCURRENT_TRANSACTION 2D521
        DELTA_CONCURRENT_WRITE 2D521
        DELTA_METADATA_CHANGED 2D521
        DELTA_PROTOCOL_CHANGED 2D521
        TABLELOG_COMMIT_STATE_UNKNOWN 40003
        TABLELOG_CONCURRENT_MODIFICATION 2D521
        TABLELOG_ERROR XX000
        TABLELOG_STORAGE_ACCESS 42501
        TABLELOG_STORAGE_ERROR 58030
        TABLELOG_STORAGE_MISSING 42K03
        TABLELOG_STORAGE_UNAVAILABLE 08000
        TABLELOG_WRITE_OUTCOME_UNKNOWN 40003
    """,
    "SparkRuntimeException": """
        DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD 22KD0
        DELTA_STATE_RECOVER_ERROR XXKDS
        DELTA_TXN_LOG_FAILED_INTEGRITY XXKDS
        DELTA_VERSIONS_NOT_CONTIGUOUS KD00C
        DELTA_VIOLATE_CONSTRAINT_WITH_VALUES 23001
        FAILED_READ_FILE KD001
    """,
    "UnsupportedOperationException": """
        DELTA_CANNOT_MODIFY_APPEND_ONLY 42809
        DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE 0AKDC
        TABLELOG_UNSAFE_STORE 0A000
        TABLELOG_UNSUPPORTED_ENVIRONMENT 0A000
    """,
}

CONDITIONS = {
    name: Condition(sql_state, raises)
    for raises, text in _BY_CLASS.items()
    for name, sql_state in (line.split() for line in text.strip().splitlines())
}
_UNKNOWN = Condition("XX000", "PySparkException")


def of(name: str) -> Condition:
    """The condition called `name`; of a part of one (`DELTA_X.PART`) it is the whole's, of another's own `_UNKNOWN`."""
    return CONDITIONS.get(name.partition(".")[0], _UNKNOWN)
