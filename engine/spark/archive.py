"""The class archive: Spark's classes, parsed and checked once, for every later JVM to map."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from engine.errors import EnvironmentProblem
from engine.spark.java import Java, cache_folder
from engine.spark.processes import JVM_OPTIONS, SPARK_HOME


def class_archive_options(java: Java) -> str:
    """The JVM options to use the class archive, if one was built."""
    archive = archive_path(java)
    if not archive.exists():
        return ""
    base = base_archive(java)
    files = f"{base}:{archive}" if base is not None else str(archive)
    # A JVM that finds the archive stale goes on without it; it need not say so.
    return f"-XX:SharedArchiveFile={shlex.quote(files)} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"


def archiving_options(java: Java, archive: Path) -> str:
    """The JVM options to write the archive when the JVM ends."""
    base = base_archive(java)
    options = f"-XX:ArchiveClassesAtExit={shlex.quote(str(archive))} -Xlog:disable"
    return options if base is None else f"-XX:SharedArchiveFile={shlex.quote(str(base))} {options}"


def archive_path(java: Java) -> Path:
    """Where the class archive for this Java and this Spark is kept."""
    return cache_folder() / f"classes-{_fingerprint(java, SPARK_HOME / 'jars')}.jsa"


def base_archive(java: Java) -> Path | None:
    """Where to keep the archive of Java's own classes, for a Java that comes without one."""
    if (java.home / "lib" / "server" / "classes.jsa").exists():
        return None
    return cache_folder() / f"base-{_fingerprint(java)}.jsa"


def _fingerprint(java: Java, *folders: Path) -> str:
    """A short name for a build of Java and for folders as they were installed."""
    release = java.home / "release"
    parts = [str(java.home), release.read_text(errors="replace") if release.is_file() else str(java.version)]
    for folder in folders:
        status = folder.stat()
        parts += [pyspark.__version__, str(folder), str(status.st_mtime_ns)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def dump_base_archive(java: Java, path: Path) -> None:
    """Archive Java's own classes."""
    done = subprocess.run(
        [str(java.executable), *JVM_OPTIONS, "-Xshare:dump", f"-XX:SharedArchiveFile={path}"],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0 or not path.exists():
        last = "\n  ".join(done.stdout.strip().splitlines()[-5:])
        raise EnvironmentProblem(f"{java.executable} could not archive its classes:\n  {last}")


def train(session: SparkSession, folder: Path) -> None:
    """Do a little of everything that workflows do, to load the classes that they will need."""
    numbers = session.sql(
        "select id, id % 7 k, string(id) s, cast(id as decimal(12,2)) d, "
        "date_add(date'2020-01-01', int(id)) t from range(1000)"
    )
    for form in ("parquet", "orc", "json", "csv"):
        path = str(folder / form)
        numbers.write.format(form).save(path)
        session.read.format(form).schema(numbers.schema).load(path).filter("k > 2").count()
    numbers.createOrReplaceTempView("numbers")
    session.sql(
        "select a.k, count(*) n, sum(a.d) d, max(upper(a.s)) s, rank() over (order by a.k) r from numbers a "
        "join numbers b on a.id = b.id where a.t > date'2020-02-01' group by a.k order by a.k"
    ).toPandas()
    numbers.repartition(4, "k").dropDuplicates(["k"]).union(numbers).limit(5).collect()
