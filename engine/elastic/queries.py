"""The queries that sessions ask: SSB's, as the elastic paper does (its section 5.7), or a person's own.

Both are written as for one server.
"""

from __future__ import annotations

from engine.model.elastic import Warehouse

SQL = {
    "Q1.1": """
        SELECT sum(lo_extendedprice * lo_discount) AS revenue
        FROM lineorder JOIN `date` ON lo_orderdate = d_datekey
        WHERE d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25
    """,
    "Q2.1": """
        SELECT sum(CAST(lo_revenue AS bigint)) AS revenue, d_year, p_brand1
        FROM lineorder
        JOIN `date` ON lo_orderdate = d_datekey
        JOIN part ON lo_partkey = p_partkey
        JOIN supplier ON lo_suppkey = s_suppkey
        WHERE p_category = 'MFGR#12' AND s_region = 'AMERICA'
        GROUP BY d_year, p_brand1
        ORDER BY d_year, p_brand1
    """,
    "Q3.1": """
        SELECT c_nation, s_nation, d_year, sum(CAST(lo_revenue AS bigint)) AS revenue
        FROM lineorder
        JOIN `date` ON lo_orderdate = d_datekey
        JOIN customer ON lo_custkey = c_custkey
        JOIN supplier ON lo_suppkey = s_suppkey
        WHERE c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND 1997
        GROUP BY c_nation, s_nation, d_year
        ORDER BY d_year, revenue DESC, c_nation, s_nation
    """,
    "Q4.1": """
        SELECT d_year, c_nation, sum(CAST(lo_revenue - lo_supplycost AS bigint)) AS profit
        FROM lineorder
        JOIN `date` ON lo_orderdate = d_datekey
        JOIN customer ON lo_custkey = c_custkey
        JOIN supplier ON lo_suppkey = s_suppkey
        JOIN part ON lo_partkey = p_partkey
        WHERE c_region = 'AMERICA' AND s_region = 'AMERICA' AND p_mfgr IN ('MFGR#1', 'MFGR#2')
        GROUP BY d_year, c_nation
        ORDER BY d_year, c_nation
    """,
}


def asked(warehouse: Warehouse) -> dict[str, str]:
    """The queries that a file asks for, by their names."""
    if isinstance(warehouse.queries, dict):
        return dict(warehouse.queries)
    return {name: SQL[name] for name in warehouse.queries}
