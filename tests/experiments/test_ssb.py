"""`papilio data ssb`: the tables are those of the star schema benchmark's definition, told by DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from engine.errors import BadInput
from engine.experiments.data import DataSet, generate_tpch
from engine.experiments.ssb import SSB_TABLES, generate_ssb, parts_at

SCALE = 0.02

COLUMNS = {
    "lineorder": """lo_orderkey lo_linenumber lo_custkey lo_partkey lo_suppkey lo_orderdate lo_orderpriority
        lo_shippriority lo_quantity lo_extendedprice lo_ordtotalprice lo_discount lo_revenue lo_supplycost lo_tax
        lo_commitdate lo_shipmode""",
    "customer": "c_custkey c_name c_address c_city c_nation c_region c_phone c_mktsegment",
    "supplier": "s_suppkey s_name s_address s_city s_nation s_region s_phone",
    "part": "p_partkey p_name p_mfgr p_category p_brand1 p_color p_type p_size p_container",
    "date": """d_datekey d_date d_dayofweek d_month d_year d_yearmonthnum d_yearmonth d_daynuminweek d_daynuminmonth
        d_daynuminyear d_monthnuminyear d_weeknuminyear d_sellingseason d_lastdayinweekfl d_lastdayinmonthfl
        d_holidayfl d_weekdayfl""",
}

#: What must hold for every row, from the definition's value domains.
DOMAINS = {
    "lineorder": [
        "lo_linenumber BETWEEN 1 AND 7",
        "lo_quantity BETWEEN 1 AND 50",
        "lo_discount BETWEEN 0 AND 10",
        "lo_tax BETWEEN 0 AND 8",
        "lo_revenue = lo_extendedprice * (100 - lo_discount) // 100",
        "lo_supplycost BETWEEN 100 AND 100000",  # cents
        "lo_shippriority = '0'",
        "lo_commitdate > lo_orderdate",
        "lo_orderpriority IN ('1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW')",
        "lo_shipmode IN ('REG AIR', 'AIR', 'RAIL', 'TRUCK', 'MAIL', 'FOB', 'SHIP')",
    ],
    "customer": [
        "c_city = rpad(left(c_nation, 9), 9, ' ') || right(c_city, 1)",
        "regexp_full_match(right(c_city, 1), '[0-9]')",
        "regexp_full_match(c_phone, '\\d{2}-\\d{3}-\\d{3}-\\d{4}')",
        "length(c_address) <= 25",
        "c_mktsegment IN ('AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY')",
    ],
    "supplier": ["s_city = rpad(left(s_nation, 9), 9, ' ') || right(s_city, 1)", "length(s_address) <= 25"],
    "part": [
        "regexp_full_match(p_mfgr, 'MFGR#[1-5]')",
        "regexp_full_match(p_category, p_mfgr || '[1-5]')",
        "starts_with(p_brand1, p_category)",
        "CAST(p_brand1[8:] AS INTEGER) BETWEEN 1 AND 40",
        "p_size BETWEEN 1 AND 50",
        "length(p_name) <= 22 AND length(p_color) <= 11",
    ],
    "date": [
        "d_datekey = d_yearmonthnum * 100 + d_daynuminmonth",
        "d_yearmonthnum = d_year * 100 + d_monthnuminyear",
        "d_weeknuminyear BETWEEN 1 AND 53",
        "d_daynuminweek BETWEEN 1 AND 7",
        "(d_dayofweek = 'Saturday') = (d_lastdayinweekfl = '1')",
        "(d_dayofweek IN ('Saturday', 'Sunday')) = (d_weekdayfl = '0')",
        "length(d_date) <= 18",
    ],
}

#: How many different values a column has, from the definition.
DISTINCT = {
    "customer": {"c_nation": 25, "c_region": 5},
    "supplier": {"s_region": 5},
    "part": {"p_mfgr": 5, "p_category": 25, "p_type": 150, "p_size": 50, "p_container": 40},
    "date": {"d_year": 7, "d_yearmonthnum": 84, "d_month": 12, "d_dayofweek": 7, "d_sellingseason": 5},
    "lineorder": {"lo_orderpriority": 5, "lo_shipmode": 7, "lo_discount": 11, "lo_tax": 9, "lo_quantity": 50},
}


@pytest.fixture(scope="module")
def ssb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "ssb"
    generate_ssb(folder, SCALE)
    return folder


@pytest.fixture(scope="module")
def database(ssb: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in SSB_TABLES:
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{ssb / table}.parquet'")
    return connection


def single(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(scope="module")
def star_of_tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The star of the TPC-H data that all tests share."""
    folder = tmp_path_factory.mktemp("data") / "star"
    generate_ssb(folder, 0.01)
    return folder


@pytest.mark.parametrize("table", SSB_TABLES)
def test_every_row_is_what_sql_makes_of_tpc_h_as_the_workflow_does(tpch, star_of_tpch, table):
    """`tpch_to_ssb` is compared with the same SQL, so the workflow and this derivation make the same star."""
    answers = Path(__file__).parents[1] / "end_to_end" / "answers" / "tpch_to_ssb.sql"
    with duckdb.connect() as oracle:
        for file in tpch.glob("*.parquet"):
            oracle.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
        oracle.execute(answers.read_text())
        derived = table if table in ("lineorder", "date") else f"_{table}"
        columns = ", ".join(COLUMNS[table].split())
        wanted, made = f"SELECT {columns} FROM {derived}", f"SELECT {columns} FROM '{star_of_tpch}/{table}.parquet'"
        assert oracle.execute(f"{wanted} EXCEPT ALL {made} LIMIT 3").fetchall() == []
        assert oracle.execute(f"{made} EXCEPT ALL {wanted} LIMIT 3").fetchall() == []
        assert single(oracle, f"SELECT count(*) FROM ({made})") > 0


def test_row_counts_are_those_of_the_definition(database: duckdb.DuckDBPyConnection) -> None:
    counts = {table: single(database, f"FROM {table} SELECT count(*)") for table in SSB_TABLES}
    lines = counts.pop("lineorder")
    assert counts == {"customer": 30_000 * SCALE, "supplier": 2_000 * SCALE, "part": 200_000 * SCALE, "date": 2556}
    assert lines == pytest.approx(6_000_000 * SCALE, rel=0.02)


def test_parts_grow_with_the_logarithm_of_the_scale() -> None:
    assert [parts_at(scale) for scale in (0.01, 0.5, 1, 1.5, 2, 4, 10, 100)] == [
        2_000, 100_000, 200_000, 200_000, 400_000, 600_000, 800_000, 1_400_000,
    ]  # fmt: skip


@pytest.mark.parametrize("table", SSB_TABLES)
def test_columns_are_those_of_the_definition(database: duckdb.DuckDBPyConnection, table: str) -> None:
    found = [row[0] for row in database.execute(f"DESCRIBE {table}").fetchall()]
    assert found == COLUMNS[table].split()


@pytest.mark.parametrize(("table", "rule"), [(table, rule) for table, rules in DOMAINS.items() for rule in rules])
def test_values_are_in_their_domains(database: duckdb.DuckDBPyConnection, table: str, rule: str) -> None:
    assert single(database, f"FROM {table} SELECT count(*) WHERE ({rule}) IS NOT TRUE") == 0


@pytest.mark.parametrize("table", DISTINCT)
def test_columns_have_as_many_values_as_the_definition_says(database: duckdb.DuckDBPyConnection, table: str) -> None:
    counts = ", ".join(f"count(DISTINCT {column})" for column in DISTINCT[table])
    row = database.execute(f"FROM {table} SELECT {counts}").fetchone()
    assert row == tuple(DISTINCT[table].values())


def test_brands_and_cities_are_spread(database: duckdb.DuckDBPyConnection) -> None:
    assert single(database, "FROM part SELECT count(DISTINCT p_brand1)") > 900  # of 1,000, with 4,000 parts
    assert single(database, "FROM customer SELECT count(DISTINCT c_city)") > 200  # of 250, with 600 customers


@pytest.mark.parametrize(
    ("key", "parent", "parent_key"),
    [
        ("lo_custkey", "customer", "c_custkey"),
        ("lo_suppkey", "supplier", "s_suppkey"),
        ("lo_partkey", "part", "p_partkey"),
        ("lo_orderdate", "date", "d_datekey"),
        ("lo_commitdate", "date", "d_datekey"),
    ],
)
def test_every_key_is_found(database: duckdb.DuckDBPyConnection, key: str, parent: str, parent_key: str) -> None:
    assert (
        single(database, f"FROM lineorder SELECT count(*) WHERE {key} NOT IN (SELECT {parent_key} FROM {parent})") == 0
    )
    assert single(database, f"FROM {parent} SELECT count(*) - count(DISTINCT {parent_key})") == 0


def test_every_line_of_tpch_is_there_with_its_price_and_date(
    database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    generate_tpch(tmp_path / "tpch", SCALE, tables=["lineitem", "orders", "partsupp"])
    difference = f"""
        SELECT count(*) FROM lineorder FULL JOIN (
            FROM '{tmp_path}/tpch/lineitem.parquet' JOIN '{tmp_path}/tpch/orders.parquet' ON l_orderkey = o_orderkey
            JOIN '{tmp_path}/tpch/partsupp.parquet' ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        ) ON lo_orderkey = l_orderkey AND lo_linenumber = l_linenumber
        WHERE lo_extendedprice IS DISTINCT FROM 100 * l_extendedprice OR lo_supplycost IS DISTINCT FROM 100 * ps_supplycost
          OR lo_orderdate IS DISTINCT FROM CAST(strftime(o_orderdate, '%Y%m%d') AS INTEGER)
    """
    assert single(database, difference) == 0


def test_a_folder_says_what_it_holds_and_is_kept(ssb: Path) -> None:
    marker = DataSet.read_marker(ssb, "ssb")
    assert marker is not None
    assert marker.is_complete_in(ssb)
    assert sorted(path.name for path in ssb.iterdir()) == sorted(
        [*(f"{name}.parquet" for name in SSB_TABLES), "ssb.json"]
    )
    assert generate_ssb(ssb, SCALE).kept
    with pytest.raises(BadInput, match=r"holds SSB at scale 0\.02 as parquet"):
        generate_ssb(ssb, 0.01)


def test_the_command_answers_in_json(ssb: Path) -> None:
    program = [sys.executable, "-m", "engine", "data", "ssb", "--scale", str(SCALE), "--to", str(ssb), "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["benchmark"], told["kept"], list(told["tables"])) == ("ssb", True, list(SSB_TABLES))
