"""Hadoop in Spark's JVM, made lighter for small jobs: what it does for each file and each job costs more than the rows.

It starts a `chmod` for every file and folder that Spark writes: seven for a job that writes one small file, one after
the other, some 7 ms each. Where Hadoop's native library is missing, as in PySpark's package, it knows no other way. So
its cache of file systems is given one that sets permissions by itself.

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
YARN = "yarn"
SERVERS = (
    f"{YARN}.", "mapreduce.jobhistory.", "mapreduce.shuffle.", "hadoop.http.", "hadoop.registry.", "hadoop.zk.", "ha.",
)  # fmt: skip


def lighten_hadoop(session: SparkSession) -> None:
    """Let all of a session's JVM do with less of Hadoop. Executors of a cluster keep Hadoop's own file system."""
    jvm: Any = session._jvm
    gateway: Any = session._sc._gateway
    folders = gateway.new_array(jvm.java.net.URL, 1)
    folders[0] = jvm.java.net.URI(compiled(jvm).as_uri() + "/").toURL()
    loader = jvm.java.net.URLClassLoader(folders, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    session._jsparkSession.sharedState()  # it reads all settings anew when it is first asked for
    settings = session._jsc.hadoopConfiguration()
    loader.loadClass(FILES).newInstance().use(settings)
    if session.sparkContext.master != YARN:
        fewer = loader.loadClass(SETTINGS).newInstance()
        for beginning in SERVERS:
            fewer.leaveOut(settings, beginning)


def compiled(jvm: Any) -> Path:
    """The folder with the classes, made where they are missing."""
    sources = {name: (SPARK_FILES / f"{name}.java").read_text(encoding="utf-8") for name in (FILES, SETTINGS)}
    told = hashlib.sha256("".join(sources.values()).encode()).hexdigest()[:16]
    folder = cache_folder() / f"hadoop-{pyspark.__version__}-{told}"
    folder.mkdir(exist_ok=True)
    for name, source in sources.items():
        if not (folder / f"{name}.class").exists():
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook(source)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as made:
                made.write(compiler.getBytecodes()[name])
            os.replace(made.name, folder / f"{name}.class")  # others may start Spark at the same time
    return folder
