"""The butterfly of the scheduling paper's Fig. 1: what people write by hand beside what Papilio makes of the drawing.

All contenders load the same seven targets as Parquet. Each may join as it likes, so Papilio's join is left to Spark as
the scripts leave it, and Spark broadcasts the small side. The paper draws a sort-merge join, and so does the shipped
file; a straight script and Papilio, both with that join, are compared as well.

A script is a program of its own, with a session of its own: the straight one takes it as Spark ships it, the
hand-tuned one as its author would set it. Both run a second time inside Papilio's session, which tells what of the
difference is the session's and what is the plan's. The hand-tuned one is there twice, by the join that it writes the
joined table with: the best one can write is whichever is quicker here. DuckDB and Polars have a process each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.experiments.apart import Apart
from engine.experiments.bench import Options, Report
from engine.experiments.contest import OURS, OWN, Contest, Entry, Run, contest, importable, in_own_session
from engine.experiments.data import generate_tpch
from engine.partition.granularity import Granularity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCALE = 1.0
RESULTS = ("--full",)
# Java compiles what it runs often. Papilio's session runs all scripts in each round, a script's own session that alone:
# rounds that do not count are several, and the first of them has a script of its own run several times.
WARM_ROUNDS, WARM_RUNS = 3, 5
STRAIGHT_TIMES = 1.6
TUNED_SHARE = 1 / 1.05
ANY_JOIN = {("join", "form"): "auto"}
POLICIES = ("rr", "mc", "mm", "mixed")

STRAIGHT, TUNED = f"straight PySpark, {OWN}", f"hand-tuned PySpark, {OWN}"
STRAIGHT_HERE, CACHED_HERE, TUNED_HERE = (
    f"{name}, {OURS}" for name in ("straight PySpark", "PySpark with cache", "hand-tuned PySpark")
)
TABLES = f"PySpark, the three tables without the views, {OURS}"
MIXED, SAIL = "papilio fused mixed", "papilio on Sail"
STRAIGHT_MERGE, STRAIGHT_MERGE_HERE, TUNED_MERGE, MIXED_MERGE = (
    f"{name}, sort-merge join" for name in (STRAIGHT, STRAIGHT_HERE, TUNED, MIXED)
)
DUCKDB, POLARS = "DuckDB", "Polars"
NEEDED = {
    "partsupp": ["ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"],
    "supplier": ["s_suppkey", "s_nationkey", "s_phone"],
}
COLUMNS = {
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, "
    "s_acctbal decimal(15,2), s_comment string",
}


def benchmark(options: Options) -> Report:
    """Fig. 1 on TPC-H: PySpark scripts, Papilio, DuckDB and Polars load the same seven targets."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}: partsupp and supplier")
    generate_tpch(data, scale, tables=("partsupp", "supplier"))
    with contest(options) as here:
        here.report.facts["scale"] = scale
        here.versions("pysail", "duckdb", "polars")
        here.hold(list(_entries(here, data)), warm_rounds=WARM_ROUNDS)
        if options.full:
            here.hold(list(_grid(here, data)), rounds=1)
        _conclude(here)
        return here.report


def _entries(here: Contest, data: Path) -> Iterator[Entry]:
    spark = here.spark
    shipped, tuned = (here.own_session("butterfly_apart", kind) for kind in ("shipped", "tuned"))

    def apart(session: Apart, **asked: str) -> Run:
        return in_own_session(session, data, WARM_RUNS, **asked)

    yield Entry(STRAIGHT, apart(shipped, script="straight"))
    yield Entry(STRAIGHT_HERE, lambda out: straight(spark, data, out))
    yield Entry(CACHED_HERE, lambda out: straight(spark, data, out, cache=True))
    yield Entry(TUNED, apart(tuned, script="tuned"))
    yield Entry(TUNED_MERGE, apart(tuned, script="tuned", hint="merge"))
    yield Entry(TUNED_HERE, lambda out: hand_tuned(spark, data, out))
    yield Entry(TABLES, lambda out: tables_alone(spark, data, out), answer="tables")
    yield Entry(MIXED, here.papilio("fig1", data, ANY_JOIN, granularity="fused", policy="mixed"))
    yield Entry(STRAIGHT_MERGE, apart(shipped, script="straight", hint="merge"))
    yield Entry(STRAIGHT_MERGE_HERE, lambda out: straight(spark, data, out, hint="merge"))
    yield Entry(MIXED_MERGE, here.papilio("fig1", data, granularity="fused", policy="mixed"))
    if skipped := importable("pysail"):
        here.report.facts[SAIL] = skipped
    else:
        yield Entry(SAIL, _on_sail(here, data))
    for name in (DUCKDB, POLARS):
        module = name.lower()
        if skipped := importable(module):
            here.report.facts[name] = skipped
        else:
            yield Entry(name, _without_spark(here.apart("butterfly_apart", module), data))


def _on_sail(here: Contest, data: Path) -> Run:
    process = here.apart("sail_apart", here.folder)
    settings = [[node, key, value] for (node, key), value in ANY_JOIN.items()]
    return lambda out: process.ask(workflow="fig1", data=str(data), out=str(out), settings=settings)


def _without_spark(process: Apart, data: Path) -> Run:
    return lambda out: process.ask(data=str(data), out=str(out))


def _grid(here: Contest, data: Path) -> Iterator[Entry]:
    """Every granularity under every policy."""
    for granularity in Granularity:
        for policy in POLICIES:
            name = f"papilio {granularity.value} {policy}"
            if name not in here.report.contenders:
                run = here.papilio("fig1", data, ANY_JOIN, granularity=granularity.value, policy=policy)
                yield Entry(name, run)


def _conclude(here: Contest) -> None:
    text, merge = f"fused is at least {STRAIGHT_TIMES} times as fast as the straight script", "with a sort-merge join"
    here.at_least(f"{text} {OWN}", STRAIGHT, MIXED, STRAIGHT_TIMES)
    here.at_least(f"{text} {OURS}", STRAIGHT_HERE, MIXED, STRAIGHT_TIMES)
    here.at_least(f"{text} {OWN}, both {merge}", STRAIGHT_MERGE, MIXED_MERGE, STRAIGHT_TIMES)
    here.at_least(f"{text} {OURS}, both {merge}", STRAIGHT_MERGE_HERE, MIXED_MERGE, STRAIGHT_TIMES)
    if most := here.compare(STRAIGHT_HERE, TABLES):
        # All of it that is not Parquet's encoding of these tables could be done at no cost, and it would be no faster.
        here.report.facts[f"most that a plan on Spark could win over the straight script {OURS}"] = f"{most:.2f} times"
    here.compare(TUNED, TUNED_MERGE)
    for name, title in ((MIXED, "fused"), (MIXED_MERGE, f"fused {merge}")):
        _judge_tuned(here, title, name)
    text = f"fused is within 5 % of the hand-tuned script {OURS} or better, both with the join left to Spark"
    here.at_least(text, TUNED_HERE, MIXED, TUNED_SHARE)
    here.compare(CACHED_HERE, MIXED)


def _judge_tuned(here: Contest, title: str, name: str) -> None:
    """Against the best hand-tuned script, whichever that is here; and how far ahead those are that do without a JVM."""
    text = f"{title} is within 5 % of the best hand-tuned script {OWN} or better"
    times = {other: here.compare(name, other) for other in (DUCKDB, POLARS, SAIL)}
    ahead = ", ".join(f"{other} is {ratio:.2f} times as fast" for other, ratio in times.items() if ratio)
    if not here.report.finished(TUNED, TUNED_MERGE, name):
        here.report.claim(text, False, "not measured")
        return
    best = min((TUNED, TUNED_MERGE), key=lambda one: here.report.contenders[one].median)
    ratio = here.report.ratio(best, name)
    here.report.claim(
        text, ratio >= TUNED_SHARE, f"{best} / {name} = {ratio:.2f}" + (f"; {ahead} as {name}" if ahead else "")
    )  # fmt: skip


# ---------------------------------------------------------------- PySpark


def _frames(spark: SparkSession, data: Path, declared: bool = False) -> tuple[DataFrame, DataFrame]:
    """PartSupp and Supplier, cleansed. Declared, Spark starts no job to find their columns."""
    from pyspark.sql import functions as F

    def read(table: str) -> DataFrame:
        reader = spark.read.schema(COLUMNS[table]) if declared else spark.read
        return reader.parquet(f"{data}/{table}.parquet")

    partsupp = (
        read("partsupp")
        .dropna(subset=NEEDED["partsupp"])
        .withColumn("ps_totalcost", F.col("ps_availqty") * F.col("ps_supplycost"))
    )
    supplier = (
        read("supplier")
        .dropna(subset=NEEDED["supplier"])
        .withColumn("s_phone", F.concat(F.lit("+"), F.expr("replace(s_phone, '-', ' ')")))
    )
    return partsupp, supplier


def _joined(partsupp: DataFrame, supplier: DataFrame) -> DataFrame:
    return partsupp.join(supplier, partsupp.ps_suppkey == supplier.s_suppkey)


def _view_1(joined: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return joined.groupBy("s_nationkey", "ps_partkey").agg(
        F.sum("ps_totalcost").alias("total_cost"),
        F.sum("ps_availqty").alias("quantity"),
        F.count("*").alias("suppliers"),
    )


def _view_2(view_1: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    sums = [F.sum(name).alias(name) for name in ("total_cost", "quantity", "suppliers")]
    return view_1.groupBy("ps_partkey").agg(*sums)


def _view_3(joined: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return joined.groupBy("s_nationkey", "s_suppkey").agg(
        F.sum("ps_totalcost").alias("total_cost"), F.count("*").alias("parts")
    )


def _view_4(view_3: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return view_3.groupBy("s_suppkey").agg(*[F.sum(name).alias(name) for name in ("total_cost", "parts")])


def straight(spark: SparkSession, data: Path, out: Path, cache: bool = False, hint: str | None = None) -> None:
    """What one writes first: read, transform, write one target after the other; or with what is shared cached."""
    partsupp, supplier = _frames(spark, data)
    if hint:
        supplier = supplier.hint(hint)
    if cache:
        partsupp, supplier = partsupp.cache(), supplier.cache()
    joined = _joined(partsupp, supplier)
    if cache:
        joined = joined.cache()
    view_1, view_3 = _view_1(joined), _view_3(joined)
    if cache:
        view_1, view_3 = view_1.cache(), view_3.cache()
    targets = {
        "partsupp": partsupp, "supplier": supplier, "joined": joined,
        "view_1": view_1, "view_2": _view_2(view_1), "view_3": view_3, "view_4": _view_4(view_3),
    }  # fmt: skip
    for name, frame in targets.items():
        frame.write.mode("overwrite").parquet(f"{out}/{name}")


def hand_tuned(spark: SparkSession, data: Path, out: Path, hint: str | None = None) -> None:
    """What one writes who has time and knows Spark.

    A shared result is written once and read back, except where computing the few columns again costs no more than
    reading them: then nothing waits. The small side is broadcast, unless a hint says how the joined table is joined:
    merged, its rows stand by supplier, and Parquet encodes them cheaper. What is independent runs in threads, each in
    a pool of its own. Shuffles have as many partitions as cores; the session's own settings are left as they are.
    Spark is told the columns of what it reads, which takes a job away from each.
    """
    from pyspark.sql import functions as F

    cores = spark.sparkContext.defaultParallelism
    partsupp, supplier = _frames(spark, data, declared=True)
    small = supplier.hint(hint or "broadcast")

    def write(name: str, frame: DataFrame) -> None:
        frame.write.mode("overwrite").parquet(f"{out}/{name}")

    def by_part() -> None:
        few = _joined(partsupp, F.broadcast(supplier.select("s_suppkey", "s_nationkey")))
        view_1 = _view_1(few.repartition(cores, "ps_partkey")).repartition(cores, "ps_partkey")
        write("view_1", view_1)
        write("view_2", _view_2(spark.read.schema(view_1.schema).parquet(f"{out}/view_1")))

    def by_supplier() -> None:
        few = _joined(partsupp, F.broadcast(supplier.select("s_suppkey", "s_nationkey")))
        view_3 = _view_3(few)
        write("view_3", view_3)
        write("view_4", _view_4(spark.read.schema(view_3.schema).parquet(f"{out}/view_3")))

    in_threads(
        spark,
        {
            "joined": lambda: write("joined", _joined(partsupp, small)),
            "by_part": by_part,
            "partsupp": lambda: write("partsupp", partsupp),
            "by_supplier": by_supplier,
            "supplier": lambda: write("supplier", supplier),
        },
    )


def tables_alone(spark: SparkSession, data: Path, out: Path) -> None:
    """What every way of loading Fig. 1 by Spark must do at least: write PartSupp, Supplier and their join, at once."""
    from pyspark.sql import functions as F

    partsupp, supplier = _frames(spark, data)
    frames = {"joined": _joined(partsupp, F.broadcast(supplier)), "partsupp": partsupp, "supplier": supplier}

    def writing(name: str) -> Callable[[], None]:
        return lambda: frames[name].write.mode("overwrite").parquet(f"{out}/{name}")

    in_threads(spark, {name: writing(name) for name in frames})


def in_threads(spark: SparkSession, works: dict[str, Callable[[], None]]) -> None:
    """All at the same time, each in a FAIR pool of its own; the first failure is raised."""
    from pyspark import InheritableThread

    failures: list[BaseException] = []

    def work(pool: str, do: Callable[[], None]) -> None:
        try:
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
            do()
        except BaseException as error:
            failures.append(error)

    threads = [InheritableThread(target=work, args=item) for item in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# ---------------------------------------------------------------- without Spark


def in_duckdb(data: Path, out: Path) -> None:
    """The same in SQL, each shared result once."""
    import duckdb

    with duckdb.connect() as connection:
        run = connection.execute
        run(f"""CREATE TABLE partsupp AS SELECT *, ps_availqty * ps_supplycost AS ps_totalcost
            FROM '{data}/partsupp.parquet' WHERE ps_partkey IS NOT NULL AND ps_suppkey IS NOT NULL
            AND ps_availqty IS NOT NULL AND ps_supplycost IS NOT NULL""")
        run(f"""CREATE TABLE supplier AS SELECT * REPLACE ('+' || replace(s_phone, '-', ' ') AS s_phone)
            FROM '{data}/supplier.parquet'
            WHERE s_suppkey IS NOT NULL AND s_nationkey IS NOT NULL AND s_phone IS NOT NULL""")
        run("CREATE TABLE joined AS SELECT * FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey")
        run("""CREATE TABLE view_1 AS SELECT s_nationkey, ps_partkey, sum(ps_totalcost) AS total_cost,
            sum(ps_availqty)::BIGINT AS quantity, count(*) AS suppliers FROM joined GROUP BY ALL""")
        run("""CREATE TABLE view_2 AS SELECT ps_partkey, sum(total_cost) AS total_cost,
            sum(quantity)::BIGINT AS quantity, sum(suppliers)::BIGINT AS suppliers FROM view_1 GROUP BY ALL""")
        run("""CREATE TABLE view_3 AS SELECT s_nationkey, s_suppkey, sum(ps_totalcost) AS total_cost,
            count(*) AS parts FROM joined GROUP BY ALL""")
        run("""CREATE TABLE view_4 AS SELECT s_suppkey, sum(total_cost) AS total_cost, sum(parts)::BIGINT AS parts
            FROM view_3 GROUP BY ALL""")
        for name in ("partsupp", "supplier", "joined", "view_1", "view_2", "view_3", "view_4"):
            folder = out / name
            folder.mkdir()
            run(f"COPY {name} TO '{folder}/rows.parquet' (FORMAT parquet)")


def in_polars(data: Path, out: Path) -> None:
    """The same with Polars' lazy frames, collected together so that it shares what is common."""
    import polars as pl  # type: ignore[import-not-found, unused-ignore]

    partsupp: Any = (
        pl.scan_parquet(data / "partsupp.parquet")
        .drop_nulls(NEEDED["partsupp"])
        .with_columns((pl.col("ps_availqty") * pl.col("ps_supplycost")).alias("ps_totalcost"))
    )
    supplier: Any = (
        pl.scan_parquet(data / "supplier.parquet")
        .drop_nulls(NEEDED["supplier"])
        .with_columns(("+" + pl.col("s_phone").str.replace_all("-", " ", literal=True)).alias("s_phone"))
    )
    joined: Any = partsupp.join(supplier, left_on="ps_suppkey", right_on="s_suppkey", coalesce=False)
    view_1: Any = joined.group_by("s_nationkey", "ps_partkey").agg(
        pl.sum("ps_totalcost").alias("total_cost"), pl.sum("ps_availqty").alias("quantity"), pl.len().alias("suppliers")
    )
    view_2: Any = view_1.group_by("ps_partkey").agg(pl.sum("total_cost", "quantity", "suppliers"))
    view_3: Any = joined.group_by("s_nationkey", "s_suppkey").agg(
        pl.sum("ps_totalcost").alias("total_cost"), pl.len().alias("parts")
    )
    view_4: Any = view_3.group_by("s_suppkey").agg(pl.sum("total_cost", "parts"))
    frames = {
        "partsupp": partsupp, "supplier": supplier, "joined": joined,
        "view_1": view_1, "view_2": view_2, "view_3": view_3, "view_4": view_4,
    }  # fmt: skip
    for name, frame in zip(frames, pl.collect_all(list(frames.values())), strict=True):
        (out / name).mkdir()
        frame.write_parquet(out / name / "rows.parquet", compression="snappy")
