"""The tables of TPC-H and TPC-DS as Delta tables, made by SQL with several commits, partitions and deletion vectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


@dataclass(frozen=True)
class Layout:
    """How a table is stored.

    With `key`, a column of whole numbers above zero, the table gets its rows by two commits: the second one adds wrong
    rows too, with a negative key, and a DELETE removes them. `by` is the PARTITIONED BY or CLUSTER BY clause.
    """

    key: str = ""
    by: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


PLAIN = Layout()
LAYOUTS = {
    "lineitem": Layout("l_orderkey", "PARTITIONED BY (l_shipmode)", VECTORS),
    "orders": Layout("o_orderkey", "PARTITIONED BY (o_orderstatus)", MAPPED),
    "partsupp": Layout("ps_partkey", properties=VECTORS | MAPPED),
    "part": Layout(by="CLUSTER BY (p_size)"),
    "store_sales": Layout("ss_item_sk", "PARTITIONED BY (ss_store_sk)", VECTORS),
    "catalog_sales": Layout("cs_item_sk", "PARTITIONED BY (cs_ship_mode_sk)", MAPPED),
    "web_sales": Layout("ws_item_sk", "CLUSTER BY (ws_sold_date_sk)", VECTORS),
    "store_returns": Layout("sr_item_sk", properties=VECTORS | MAPPED),
    "catalog_returns": Layout("cr_item_sk", "PARTITIONED BY (cr_warehouse_sk)", VECTORS),
    "web_returns": Layout("wr_item_sk"),
    "inventory": Layout("inv_item_sk", "CLUSTER BY (inv_date_sk)", VECTORS | MAPPED),
    "customer_demographics": Layout(by="PARTITIONED BY (cd_gender)"),
}
"""Those of the tables that aren't stored by one commit of unpartitioned files."""


def create(spark: SparkSession, source: str, target: str, layout: Layout) -> None:
    """Create the Delta table `target` with the rows of the table `source`."""
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in layout.properties.items())
    clauses = f"{layout.by} {f'TBLPROPERTIES ({properties})' if properties else ''}"
    create = f"CREATE TABLE {target} USING delta {clauses} AS SELECT * FROM {source}"
    if not layout.key:
        spark.sql(create)
        return
    key = layout.key
    spark.sql(f"{create} WHERE {key} % 2 = 0")
    wrong = ", ".join(f"-{name} AS {name}" if name == key else name for name in spark.table(source).columns)
    spark.sql(
        f"INSERT INTO {target} SELECT * FROM {source} WHERE {key} % 2 = 1 "
        f"UNION ALL SELECT {wrong} FROM {source} WHERE {key} % 8 = 1"
    )
    deleted = spark.sql(f"DELETE FROM {target} WHERE {key} < 0").head()
    assert deleted is not None
    assert deleted[0] > 0
