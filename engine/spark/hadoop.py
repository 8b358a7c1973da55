"""Hadoop in Spark's JVM, made lighter for small jobs: what it does for each file and each job costs more than the rows.

It starts a `chmod` for every file and folder that Spark writes: seven for a job that writes one small file, one after
the other, some 7 ms each. Where Hadoop's native library is missing, as in PySpark's package, it knows no other way. So
its cache of file systems is given one that sets permissions by itself. Executors that are told where its class is
are given it too.

And it has 1,100 settings, which Spark copies several times for each job and sends to each task. Most are of servers
that are not here. Without them a small job took three quarters of the time.

Both are Java, which Spark's own compiler makes from the source, once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from engine.spark.java import cache_folder
from engine.spark.processes import SPARK_FILES

FILES, SETTINGS = "LocalFiles", "FewerSettings"
CHECKED_FILES = f"{FILES}$Checked"
EXECUTOR_CLASSES = "spark.executor.extraClassPath"
YARN = "yarn"
SERVERS = (
    f"{YARN}.", "mapreduce.jobhistory.", "mapreduce.shuffle.", "hadoop.http.", "hadoop.registry.", "hadoop.zk.", "ha.",
)  # fmt: skip


def lighten_hadoop(session: SparkSession) -> None:
    """Let all of a session's JVM do with less of Hadoop, and executors that have our classes on their class path."""
    jvm: Any = session._jvm
    gateway: Any = session._sc._gateway
    folder = compiled(jvm)
    folders = gateway.new_array(jvm.java.net.URL, 1)
    folders[0] = jvm.java.net.URI(folder.as_uri() + "/").toURL()
    loader = jvm.java.net.URLClassLoader(folders, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    session._jsparkSession.sharedState()  # it reads all settings anew when it is first asked for
    settings = session._jsc.hadoopConfiguration()
    loader.loadClass(FILES).newInstance().use(settings)
    if str(folder) in session.sparkContext.getConf().get(EXECUTOR_CLASSES, "").split(os.pathsep):
        settings.setClassLoader(loader)
        settings.set("fs.file.impl", CHECKED_FILES)
    if session.sparkContext.master != YARN:
        fewer = loader.loadClass(SETTINGS).newInstance()
        for beginning in SERVERS:
            fewer.leaveOut(settings, beginning)


def classes_folder() -> Path:
    """Where the classes are, or will be."""
    told = hashlib.sha256("".join(_sources().values()).encode()).hexdigest()[:16]
    folder = cache_folder() / f"hadoop-{pyspark.__version__}-{told}"
    folder.mkdir(exist_ok=True)
    return folder


def compiled(jvm: Any) -> Path:
    """The folder with the classes, made where they are missing."""
    folder = classes_folder()
    for name, source in _sources().items():
        if not (folder / f"{name}.class").exists():
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook(source)
            made = dict(compiler.getBytecodes())
            for part in sorted(made, reverse=True):  # the class that is asked for above comes after those inside it
                with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                    file.write(made[part])
                os.replace(file.name, folder / f"{part}.class")  # others may start Spark at the same time
    return folder


def _sources() -> dict[str, str]:
    return {name: (SPARK_FILES / f"{name}.java").read_text(encoding="utf-8") for name in (FILES, SETTINGS)}
