"""A Spark session: what it is set to, whom it listens to, how it ends and what it says when it cannot start."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from engine.errors import BadInput, EnvironmentProblem
from engine.spark.session import (
    SparkSettings,
    close_session,
    lent,
    open_session,
    properties_text,
    spark_properties,
    write_private,
)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240


# On a handful of rows Java's quick compiler alone is done sooner.
QUICK_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


def start(script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a Python script in a process group of its own, as a shell would."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**(os.environ if environment is None else environment), **QUICK_JAVA, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def run(script: str, *arguments: str, environment: Mapping[str, str] | None = None, given: Any = None) -> Answer:
    """Run a script to its end; it reads `given` as JSON from stdin and prints JSON on its last line."""
    with start(script, *arguments, environment=environment) as process:
        try:
            out, err = process.communicate(json.dumps(given), timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"the script did not end:\n{out}\n{err}") from None
    return Answer(process.returncode, out, err)


class Answer:
    """How a script ended and what it said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def facts(self) -> dict[str, Any]:
        """The JSON of the last line of a script that went well."""
        assert self.code == 0, f"exit {self.code}\n{self.out}\n{self.err}"
        return json.loads(self.out.splitlines()[-1])


def first_line(process: subprocess.Popen[str]) -> Any:
    """The JSON of the first line that a running script prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(process.communicate()[1])
    return json.loads(line)


def gone(pids: list[int]) -> bool:
    """Whether all these processes end, before patience does."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not any(_running(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def _running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


WHOLE_LIFE = """
import json, os, signal, sys
from pathlib import Path
import psutil
from pyspark.sql import SparkSession
from engine.spark.session import SparkSettings, close_session, open_session

def jvm():
    return next(child for child in psutil.Process().children() if "java" in child.name())

facts, heard = {}, []
handler = lambda *_: heard.append(1)
signal.signal(signal.SIGINT, handler)
scratch = Path(sys.argv[1])
settings = SparkSettings("local[1]", 512, scratch, {"spark.papilio.test": "a \\\\ b"})
spark = open_session(settings)
first = jvm()
facts["handler_kept"] = signal.getsignal(signal.SIGINT) is handler
facts["passed_on"] = spark.conf.get("spark.papilio.test")
secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
facts["secret_hidden"] = len(secret) >= 32 and secret not in " ".join(first.cmdline())
facts["listens"] = sorted({c.laddr.ip for c in first.net_connections("tcp") if c.status == "LISTEN"})
facts["gateway_hidden"] = not any(key.startswith("PYSPARK_GATEWAY") for key in os.environ)
os.killpg(os.getpgrp(), signal.SIGINT)
facts["after_ctrl_c"] = spark.range(10).count()
facts["heard"] = len(heard)
first.kill()
first.wait()
close_session(spark)
spark = open_session(settings)
facts["after_the_jvm_died"] = spark.range(20).count()
second = jvm()
close_session(spark)
facts["ended"] = not second.is_running()
facts["scratch"] = [entry.name for entry in scratch.iterdir()]
facts["forgotten"] = SparkSession.getActiveSession() is None
print(json.dumps(facts))
"""

CANNOT_START = """
import sys
from engine.errors import EnvironmentProblem
from engine.spark.session import SparkSettings, open_session
try:
    open_session(SparkSettings("local[1]", int(sys.argv[1])))
except EnvironmentProblem as problem:
    print(problem)
"""

OWN_EXECUTORS = """
import json
from engine.spark.session import SparkSettings, close_session, open_session
spark = open_session(SparkSettings("local-cluster[1,1,512]", 512))
def driver_of(batches):
    import os, pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"pid": [os.getppid()]})
pids = [row.pid for row in spark.range(1).mapInArrow(driver_of, "pid long").collect()]
facts = {"total": spark.range(100).selectExpr("sum(id)").first()[0], "pids": pids}
import psutil
tree = [child.pid for child in psutil.Process().children(recursive=True)]
driver = [child.pid for child in psutil.Process().children()]
facts["outside_the_driver"] = all(pid in tree and pid not in driver for pid in pids)
close_session(spark)
facts["left"] = [child.pid for child in psutil.Process().children(recursive=True)]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def whole_life(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process saw that opened a session, pressed Ctrl-C, lost its JVM, and opened another."""
    scratch = tmp_path_factory.mktemp("scratch")
    # Somebody else's settings, as a shell may have them.
    leftovers = {
        "SPARK_REMOTE": "sc://nowhere",
        "SPARK_HOME": "/nowhere",
        "PYSPARK_SUBMIT_ARGS": "--nonsense",
    }
    answer = run(WHOLE_LIFE, str(scratch), environment={**os.environ, **leftovers})
    return {**answer.facts(), "stderr": answer.err, "stdout": answer.out}


def properties(master: str, **settings: Any) -> dict[str, str]:
    return spark_properties(SparkSettings(master, **settings), Path("/scratch"))


def test_the_session_is_set_as_papilio_needs_it(spark: SparkSession) -> None:
    expected = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.reflect.allowList": "^$",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
    }
    assert {key: spark.conf.get(key) for key in expected} == expected


def test_sql_cannot_read_a_file_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("do not read")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"select * from text.`{tmp_path}/secret.txt`").collect()


def test_a_second_session_in_the_same_process_is_refused(spark: SparkSession) -> None:
    with pytest.raises(EnvironmentProblem, match="already open"):
        open_session(SparkSettings("local[1]", 512))
    assert spark.range(3).count() == 3


def test_a_lent_session_is_what_others_open_and_stays_open_when_they_close_it(spark: SparkSession) -> None:
    with lent(spark):
        borrowed = open_session(SparkSettings("local[2]"))
        assert borrowed is spark
        close_session(borrowed)
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (SparkSettings("local[1]"), r"the master 'local\[1\]'"),
        (SparkSettings("local[2]", driver_memory_mb=777), "777 MB"),
        (SparkSettings("local[2]", extra={"spark.speculation": "true"}), "spark.speculation"),
    ],
)
def test_a_lent_session_is_not_passed_off_as_another(spark: SparkSession, other: SparkSettings, named: str) -> None:
    with lent(spark), pytest.raises(EnvironmentProblem, match=named):
        open_session(other)


def test_ctrl_c_reaches_python_alone(whole_life: dict[str, Any]) -> None:
    assert whole_life["heard"] == 1
    assert whole_life["after_ctrl_c"] == 10


def test_pyspark_does_not_take_over_the_handler_of_ctrl_c(whole_life: dict[str, Any]) -> None:
    assert whole_life["handler_kept"]


def test_a_session_can_be_opened_again_after_its_jvm_died(whole_life: dict[str, Any]) -> None:
    assert whole_life["after_the_jvm_died"] == 20


def test_a_closed_session_leaves_no_process_and_no_file(whole_life: dict[str, Any]) -> None:
    assert whole_life["ended"]
    assert whole_life["scratch"] == []
    assert whole_life["forgotten"]


def test_spark_listens_on_loopback_only(whole_life: dict[str, Any]) -> None:
    assert whole_life["listens"]
    assert all(address.removeprefix("::ffff:") in ("127.0.0.1", "::1") for address in whole_life["listens"])


def test_secrets_stay_off_the_command_line_and_out_of_the_environment(whole_life: dict[str, Any]) -> None:
    assert whole_life["secret_hidden"]
    assert whole_life["gateway_hidden"]


def test_a_setting_of_the_caller_arrives_as_it_was(whole_life: dict[str, Any]) -> None:
    assert whole_life["passed_on"] == "a \\ b"


def test_spark_has_nothing_to_say_when_all_is_well(whole_life: dict[str, Any]) -> None:
    assert whole_life["stderr"] == ""
    assert len(whole_life["stdout"].splitlines()) == 1


def test_a_jvm_that_cannot_start_is_quoted_without_a_stack() -> None:
    too_much_mb = psutil.virtual_memory().total // 2**20 * 10**6
    answer = run(CANNOT_START, str(too_much_mb))
    assert answer.code == 0, answer.err
    assert "could not start Spark:" in answer.out
    assert "heap" in answer.out
    assert "\tat " not in answer.out
    assert answer.err == ""


@pytest.mark.slow  # JVMs that start JVMs
def test_local_cluster_runs_python_in_executors_of_its_own_and_ends_them() -> None:
    facts = run(OWN_EXECUTORS).facts()
    assert facts["total"] == 4950
    assert facts["pids"]
    assert facts["outside_the_driver"]
    assert facts["left"] == []


@pytest.mark.parametrize(
    "master", ["local", "local[3]", "local[*]", "local-cluster[2,1,1024]", "spark://10.0.0.1:7077"]
)
def test_every_documented_form_of_master_is_taken(master: str) -> None:
    assert properties(master)["spark.master"] == master


@pytest.mark.parametrize(
    "master", ["", "mesos://host", "local[0]", "local[x]", "local-cluster[2]", "spark://", "k8s://", "sails"]
)
def test_another_master_is_refused_with_the_forms_there_are(master: str) -> None:
    with pytest.raises(BadInput, match=r"local-cluster\[workers,cores,MB\]"):
        properties(master)


def test_driver_memory_is_a_quarter_of_the_machines_unless_set() -> None:
    quarter = psutil.virtual_memory().total // 4 // 2**20
    assert properties("local")["spark.driver.memory"] == f"{max(512, quarter)}m"
    assert properties("local", driver_memory_mb=700)["spark.driver.memory"] == "700m"


def test_too_little_driver_memory_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 512 MB"):
        properties("local", driver_memory_mb=100)


def test_an_executor_never_asks_for_more_than_its_worker_has() -> None:
    assert properties("local-cluster[2,1,700]")["spark.executor.memory"] == "700m"


@pytest.mark.parametrize(
    ("master", "bound"),
    [
        ("local[2]", True),
        ("spark://localhost:7077", True),
        ("spark://127.0.0.1:1,10.0.0.1:2", False),
        ("spark://host:1", False),
    ],
)
def test_the_driver_binds_to_loopback_only_where_everything_is_on_this_machine(master: str, bound: bool) -> None:
    assert ("spark.driver.bindAddress" in properties(master)) is bound


def test_the_callers_jvm_options_are_added_to_papilios() -> None:
    options = properties("local", extra={"spark.driver.extraJavaOptions": "-Dx=1"})["spark.driver.extraJavaOptions"]
    assert options.endswith(" -Dx=1")
    assert "log4j2" in options


def test_settings_do_not_show_their_secrets() -> None:
    assert "hidden" not in repr(SparkSettings(extra={"spark.authenticate.secret": "hidden"}))


def test_a_private_file_is_for_its_owner_only_and_never_an_old_one(tmp_path: Path) -> None:
    path = write_private(tmp_path / "file", properties_text({"a": "b\\c\nd"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "a=b\\\\c\\nd\n"
    with pytest.raises(FileExistsError):
        write_private(path, "")


KILLED = """
import logging
from engine.spark.session import SparkSettings, close_session, open_session
spark = open_session(SparkSettings("local[1]", 512))
logging.error("Exception while sending command.")  # as py4j says in a thread that speaks to a JVM that dies
close_session(spark, at_once=True)
logging.error("Exception while sending command.")
logging.error("Something else.")
print("{}")
"""


@pytest.mark.slow
def test_a_session_that_is_ended_at_once_is_silent_about_who_was_speaking_to_it() -> None:
    ended = run(KILLED)
    assert ended.facts() == {}
    said = [line for line in ended.err.splitlines() if line.startswith("ERROR")]
    assert said == ["ERROR:root:Exception while sending command.", "ERROR:root:Something else."]
