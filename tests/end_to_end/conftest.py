"""Data for the end-to-end tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def dirty_tpch(tpch, tmp_path_factory):
    """PartSupp and Supplier with NULLs here and there, in attributes that must not be NULL."""
    import duckdb

    folder = tmp_path_factory.mktemp("dirty")
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (SELECT ps_partkey, ps_suppkey, CASE WHEN ps_partkey % 97 = 0 THEN NULL ELSE ps_availqty END AS ps_availqty,
            CASE WHEN ps_partkey % 101 = 1 THEN NULL ELSE ps_supplycost END AS ps_supplycost, ps_comment
            FROM '{tpch}/partsupp.parquet') TO '{folder}/partsupp.parquet'"""
        )
        connection.execute(
            f"""COPY (SELECT s_suppkey, s_name, s_address, s_nationkey,
            CASE WHEN s_suppkey % 10 = 3 THEN NULL ELSE s_phone END AS s_phone, s_acctbal, s_comment
            FROM '{tpch}/supplier.parquet') TO '{folder}/supplier.parquet'"""
        )
    return folder
