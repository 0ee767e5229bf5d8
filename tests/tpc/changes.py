"""The refresh functions of TPC-H and other changes to its tables, in SQL that Spark and DuckDB both run.

`{target}` is where the changed tables are, `{source}` where the tables are as they were generated. The data that the
specification has its generator make for the refresh functions are copies of existing rows here, with new keys.
"""

COLUMNS = {
    "orders": "o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, "
    "o_comment",
    "lineitem": "l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, "
    "l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment",
}
KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


def new_rows(table: str, stream: int) -> str:
    """The rows that RF1 inserts. Of 32 keys the generated orders have 8, so that the keys of streams 1 to 3 are new."""
    key = KEYS[table]
    columns = f"{key} + {8 * stream} AS {key}, {COLUMNS[table]}"
    return f"SELECT {columns} FROM {{source}}.{table} WHERE {key} % 499 = {stream}"


def old_keys(stream: int) -> str:
    """The orders that RF2 deletes."""
    return f"SELECT o_orderkey AS gone FROM {{source}}.orders WHERE o_orderkey % 503 = {stream}"


def refresh_by_insert_and_delete(stream: int) -> list[str]:
    """RF1 by INSERT and RF2 by DELETE, of a range of keys."""
    low, high = 10_000 * stream, 10_000 * stream + 600
    return [
        *(f"INSERT INTO {{target}}.{table} {new_rows(table, stream)}" for table in KEYS),
        *(f"DELETE FROM {{target}}.{table} WHERE {key} BETWEEN {low} AND {high}" for table, key in KEYS.items()),
    ]


def refresh_by_merge(stream: int) -> list[str]:
    """RF1 and RF2 by MERGE: what is there already is left alone, and orders all over the tables go."""
    insert = "MERGE INTO {{target}}.{table} t USING ({rows}) s ON t.{key} = s.{key} WHEN NOT MATCHED THEN INSERT *"
    delete = "MERGE INTO {{target}}.{table} t USING ({rows}) s ON t.{key} = s.gone WHEN MATCHED THEN DELETE"
    return [
        *(insert.format(table=table, key=key, rows=new_rows(table, stream)) for table, key in KEYS.items()),
        *(delete.format(table=table, key=key, rows=old_keys(stream)) for table, key in KEYS.items()),
    ]


CORRECTIONS = [
    # The balance of a customer goes down by what was ordered in the last months; who ordered too much is deleted.
    """MERGE INTO {target}.customer t
       USING (SELECT o_custkey, sum(o_totalprice) AS spent FROM {target}.orders
              WHERE o_orderdate >= DATE '1998-06-01' GROUP BY o_custkey) s
       ON t.c_custkey = s.o_custkey
       WHEN MATCHED AND s.spent > 500000 THEN DELETE
       WHEN MATCHED AND t.c_acctbal > 0 THEN UPDATE SET c_acctbal = t.c_acctbal - s.spent, c_comment = 'debited'""",
    # Three clauses at once, on several columns; lines move to other partitions.
    """MERGE INTO {target}.lineitem t
       USING (SELECT l_orderkey, l_linenumber, l_quantity + 1 AS quantity, l_partkey % 3 AS what FROM {source}.lineitem
              WHERE l_suppkey % 97 = 5) s
       ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber
       WHEN MATCHED AND s.what = 0 THEN DELETE
       WHEN MATCHED AND s.what = 1 THEN UPDATE SET l_quantity = s.quantity, l_shipmode = 'RAIL'
       WHEN NOT MATCHED THEN INSERT (l_orderkey, l_linenumber, l_quantity) VALUES (s.l_orderkey, 99, s.quantity)""",
    # Parts that no supplier has any more.
    """MERGE INTO {target}.partsupp t
       USING (SELECT * FROM {source}.partsupp WHERE ps_suppkey % 10 <> 3) s
       ON t.ps_partkey = s.ps_partkey AND t.ps_suppkey = s.ps_suppkey
       WHEN MATCHED AND t.ps_availqty < 100 THEN UPDATE SET ps_availqty = t.ps_availqty + 1000
       WHEN NOT MATCHED BY SOURCE AND t.ps_supplycost > 500 THEN DELETE
       WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ps_availqty = 0""",
    "UPDATE {target}.orders SET o_orderstatus = 'F', o_totalprice = o_totalprice + 0.5 "
    "WHERE o_orderstatus = 'P' AND o_orderdate < DATE '1995-05-01'",
    "UPDATE {target}.lineitem SET l_shipmode = 'SHIP', l_comment = NULL WHERE l_shipmode = 'TRUCK' AND l_quantity > 45",
    "DELETE FROM {target}.lineitem WHERE l_shipmode = 'FOB'",
    "DELETE FROM {target}.orders WHERE o_comment LIKE '%special%requests%' OR o_clerk IS NULL",
]

WORKLOAD = [
    *refresh_by_insert_and_delete(1),
    *refresh_by_merge(2),
    *CORRECTIONS,
    *refresh_by_insert_and_delete(3),
    *refresh_by_merge(4),
]
