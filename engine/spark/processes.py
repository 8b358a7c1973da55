"""Starting a process of Spark's, as its own launcher would: its environment and its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

import resources
from engine.errors import EnvironmentProblem
from engine.spark.java import Java, cache_folder, home_for_spark

LAST_LINES = 20
"""How much of what a JVM said is kept, to be shown if it dies."""

SPARK_HOME = Path(pyspark.__file__).resolve().parent
SPARK_FILES = Path(resources.__file__).resolve().parent / "spark"

# Shuffles took less of two cores than with the default collector, for more memory; it starts as fast.
# In executors, Hadoop starts a `chmod` for every file and folder it makes; with VFORK that takes half as long.
JVM_OPTIONS = ("-XX:+UseParallelGC", "-Djdk.lang.Process.launchMechanism=VFORK")


def spark_environment(java: Java, *, loopback: bool) -> dict[str, str]:
    """The environment of a Spark process: this Spark, this Java, this Python, nobody's leftovers."""
    ours = ("SPARK_", "PYSPARK_", "_PYSPARK_", "_SPARK_", "_JAVA_OPTIONS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment["JAVA_HOME"] = str(home_for_spark(java))
    environment["SPARK_HOME"] = str(SPARK_HOME)
    environment["SPARK_SCALA_VERSION"] = _scala_version()
    # Spark puts this folder on the class path, and a JVM refuses its class archive over a folder that holds
    # anything. It is ours, so that no one else's settings or scripts are taken up.
    nothing = cache_folder() / "no-settings"
    nothing.mkdir(exist_ok=True)
    environment["SPARK_CONF_DIR"] = str(nothing)
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if loopback:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return environment


def spark_command(environment: Mapping[str, str], main_class: str, *arguments: str) -> list[str]:
    """The command line of a Spark process, as Spark's own launcher puts it together.

    The launcher names one jar twice, which makes Java 21 refuse a class archive; here each stands once.
    """
    java = Path(environment["JAVA_HOME"]) / "bin" / "java"
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m")
    launcher = ("-cp", str(SPARK_HOME / "jars" / "*"), "org.apache.spark.launcher.Main")
    done = subprocess.run(
        [str(java), *options, *launcher, main_class, *arguments],
        check=False,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    _, separator, answer = done.stdout.partition(b"\0\n")
    if done.returncode != 0 or not separator:
        said = (done.stderr + done.stdout).decode(errors="replace").strip().splitlines()
        told = [line for line in said if "\tat " not in line][-LAST_LINES:]
        raise EnvironmentProblem("\n  ".join([f"{java} could not start Spark:", *told]))
    command = [os.fsdecode(part) for part in answer.split(b"\0")[:-1]]
    if "-cp" in command:
        place = command.index("-cp") + 1
        command[place] = _each_once(command[place])
    return command


def _each_once(class_path: str) -> str:
    """A class path with its wildcards written out, every jar once and always in the same order."""
    entries: dict[str, None] = {}
    for entry in class_path.split(os.pathsep):
        if entry.endswith("/*"):
            entries.update(dict.fromkeys(str(jar) for jar in sorted(Path(entry[:-2]).glob("*.jar"))))
        else:
            entries[entry] = None
    return os.pathsep.join(entries)


def _scala_version() -> str:
    """The Scala this Spark was built for, which its launcher asks for."""
    launcher = next((SPARK_HOME / "jars").glob("spark-launcher_*.jar"), None)
    if launcher is None:
        raise EnvironmentProblem(f"{SPARK_HOME} has no Spark jars; install pyspark again")
    return launcher.name.removeprefix("spark-launcher_").partition("-")[0]
