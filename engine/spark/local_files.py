"""Local files without a process for each: Hadoop starts a `chmod` for every file and folder that Spark writes.

A job that writes one small file starts seven, one after the other, some 7 ms each: more than half of a short job.
Where Hadoop's native library is missing, as in PySpark's package, it knows no other way. So Hadoop's cache of file
systems is given one that sets permissions by itself. Spark's own compiler makes it from its source, once.
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

NAME = "LocalFiles"
SOURCE = SPARK_FILES / f"{NAME}.java"


def use_local_files(session: SparkSession) -> None:
    """Let all of a session's JVM write local files by that file system. Executors of a cluster keep Hadoop's own."""
    jvm: Any = session._jvm
    gateway: Any = session._sc._gateway
    folders = gateway.new_array(jvm.java.net.URL, 1)
    folders[0] = jvm.java.net.URI(compiled(jvm).as_uri() + "/").toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    files = jvm.java.net.URLClassLoader(folders, parent).loadClass(NAME).newInstance()
    files.use(session._jsc.hadoopConfiguration())


def compiled(jvm: Any) -> Path:
    """The folder with the class, made where it is missing."""
    source = SOURCE.read_bytes()
    folder = cache_folder() / f"local-files-{pyspark.__version__}-{hashlib.sha256(source).hexdigest()[:16]}"
    if not (folder / f"{NAME}.class").exists():
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source.decode())
        folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as made:
            made.write(compiler.getBytecodes()[NAME])
        os.replace(made.name, folder / f"{NAME}.class")  # others may start Spark at the same time
    return folder
