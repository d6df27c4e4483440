"""Start the one Spark session of a run, and end it without leaving anything behind.

What it decides: every setting that Spark is started with.

Goals, most important first: the same rows on every master; it starts on a machine that has only Python; nothing on the
terminal and in the working folder that the user did not ask for; fast enough for a billion replicas on a laptop.

How: a folder of the session's own (mode 0700, removed at the end) holds all that Spark wants to have on disk: the
launcher that serves as JAVA_HOME, the logging rules, the packages as a zip, the warehouse, the shuffle files. The
environment is changed only while the JVM starts, since that is when it is read, and put back at once. With a `local`
master the folder that holds our packages goes on the workers' PYTHONPATH, so that numba's compiled code stays cached
beside the sources; with every other master the packages are sent as a zip, so that executors run this very version
whatever is installed over there. Workers run the interpreter that this process runs on. Jobs send one row per broker,
not per replica, through the JVM, and numpy holds one cluster at a time in each worker, so the JVM gets a quarter of the
memory that this process may use, at least 1 and at most 8 GiB: 2 GiB on a laptop of 8 GiB, 6 GiB on one of 24.

Example:
    with spark_session(app_name="fleet", master="local[2]") as spark:
        spark.range(10).count()

Left out: Spark Connect, whose workers do not see the client's modules; a second session in one process, as Spark has
one JVM per process. `local-cluster` masters keep their logs in the folder where pyspark is installed (Spark's own
rule); they are for tests.

Source: Spark 4.3.0 pyspark/java_gateway.py, pyspark/core/context.py, docs/configuration.md.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import CapturedException, PythonException
from pyspark.sql import SparkSession

from broker.errors import BrokersideError, UsageError, shorten
from spark_analysis.session.java import SessionError, find_java, write_launcher
from spark_analysis.session.jvm import Jvm
from spark_analysis.session.signals import held_signals, hurried_signals

MASTER_DEFAULT: Final = "local[*]"
HEAP_BYTES_MIN: Final = 1 << 30  # Below this the JVM itself, its class data and Arrow's buffers do not fit.
CANCEL_SECONDS_MAX: Final = 3  # From an interrupt to the end of a JVM that does not heed it.
HEAP_BYTES_MAX: Final = 8 << 30  # A larger heap has nothing to hold and lengthens the pauses of its collector.

SPARK_HOME: Final = Path(pyspark.__file__).parent

_PACKAGES: Final = ("broker", "log", "placement", "replication", "spark_analysis")
_ROOT: Final = Path(__file__).resolve().parents[2]
_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_MASTER: Final = re.compile(rf"{_LOCAL.pattern}|local-cluster\[\d+, *\d+, *\d+\]|(spark|k8s)://\S+|yarn")
_LOG_RULES: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# Named, or Spark announces that it changes this one's level.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# What goes wrong in a task reaches the driver as an exception; printed once is enough.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.context.name = org.apache.spark.TaskContextImpl
logger.context.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
"""


class JobError(BrokersideError):
    """Report that a Spark job failed, neither by its input nor by the model; a note holds Spark's trace."""

    definite = False  # Other jobs of the session have done their work.


@attrs.frozen
class Option:
    """Define one Spark setting: its key, its value and the reason for the value."""

    key: str
    value: str
    reason: str


OPTIONS: Final = (
    Option("spark.driver.bindAddress", "127.0.0.1", "Nothing of a local run is reachable from the network."),
    Option("spark.driver.host", "127.0.0.1", "Nor does a strange host name keep it from starting."),
    Option(
        "spark.driver.extraJavaOptions",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "Jobs are short and keep rows out of the JVM: half its CPU went into compiling its own code better.",
    ),
    Option("spark.ui.enabled", "false", "A port and 1 s of start-up for a page that nobody opens."),
    Option("spark.ui.showConsoleProgress", "false", "Its bar garbles ours, which knows the total."),
    Option("spark.sql.catalogImplementation", "in-memory", "No metastore_db and derby.log in the working folder."),
    Option("spark.sql.session.timeZone", "UTC", "The machine's zone never reaches a result."),
    Option("spark.sql.execution.arrow.pyspark.enabled", "true", "Rows cross to Python in columns, 20 times as fast."),
    Option("spark.sql.execution.arrow.pyspark.fallback.enabled", "false", "A slow path taken in silence is a fault."),
    Option("spark.sql.adaptive.enabled", "false", "Nothing is shuffled: planning again finds nothing to adapt."),
    Option("spark.sql.parquet.compression.codec", "zstd", "A third smaller than snappy on these tables."),
    Option("spark.sql.ansi.enabled", "true", "An overflow is an error, not a wrong count."),
    Option("spark.serializer", "org.apache.spark.serializer.KryoSerializer", "Smaller shuffles than Java's own."),
)

LOCAL_ONLY: Final = frozenset({"spark.driver.bindAddress", "spark.driver.host"})


@contextlib.contextmanager
def spark_session(
    *, app_name: str, master: str | None = None, options: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it and its JVM when the block ends, however it ends.

    `master` is a Spark master URL, `local[*]` if not given. `options` are Spark settings and
    win over those of `OPTIONS`. Raises `SessionError` when Java or Spark cannot be started,
    `UsageError` for a master that Spark does not know or when this process has a session already,
    and `JobError` in place of an error of Spark's that leaves the block.
    """
    chosen = MASTER_DEFAULT if master is None else master
    if not _MASTER.fullmatch(chosen):
        allowed = "local, local[N], local[*], local-cluster[N,CORES,MIB], spark://HOST:PORT, k8s://URL or yarn"
        raise UsageError(f"a Spark master is {allowed}, not {shorten(chosen)!r}")
    if SparkContext._active_spark_context is not None:
        raise UsageError("this process has a Spark session already; stop it first, or use it")
    with tempfile.TemporaryDirectory(prefix="brokerside-", ignore_cleanup_errors=True) as name, _own_logging():
        jvm, spark = Jvm(), None
        try:
            spark = _start(jvm, Path(name), app_name, chosen, options or {})
            with hurried_signals(partial(_cancel_jobs, spark.sparkContext, jvm)):
                yield spark
        except Exception as error:
            # On Ctrl-C the jobs are cancelled, and what then comes out is often a Java error.
            if interrupt := _interrupt_behind(error):
                raise interrupt.with_traceback(None) from None
            if jvm.was_killed:
                raise KeyboardInterrupt from None
            # Spark's errors ask the JVM for their text, which is about to end.
            if isinstance(error, CapturedException | Py4JError):
                raise job_error(error) from None
            raise
        finally:
            with held_signals(jvm.kill):
                _stop(jvm, spark)


def job_error(error: Exception) -> JobError:
    """Return a JobError with one line of Spark's error; the whole error is a note, which a traceback shows."""
    text = str(error)
    lines = [line.strip() for line in text.split("JVM stacktrace:")[0].splitlines() if line.strip()] or [repr(error)]
    # An error of our own function stands at the end of the worker's trace, any other in the first line.
    failure = JobError(f"a Spark job failed: {shorten(lines[-1 if isinstance(error, PythonException) else 0], 300)}")
    failure.add_note(text)
    return failure


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """Put back the level of logging when the block ends."""
    level = logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(level)


def _cancel_jobs(context: SparkContext, jvm: Jvm) -> None:
    """Cancel all jobs, as an interrupt is on its way; kill the JVM if it still works some seconds later.

    Spark's own handler asks the JVM on the very connection on which the main thread may be waiting; that fails, and
    the jobs go on. Here another thread asks, on its own connection. The main thread may wait for what a cancelled
    job never sends; a killed JVM ends every wait.
    """

    def cancel() -> None:
        with contextlib.suppress(Exception):  # The JVM may be gone by then.
            context.cancelAllJobs()

    logging.disable(logging.CRITICAL)  # Py4J logs the call that was cut short, with its trace.
    threading.Thread(target=cancel, daemon=True).start()
    killer = threading.Timer(CANCEL_SECONDS_MAX, jvm.kill)
    killer.daemon = True
    killer.start()


def _interrupt_behind(error: BaseException) -> BaseException | None:
    """Return the KeyboardInterrupt, or what else is no error, that was on its way out when `error` came up."""
    seen: BaseException | None = error
    while isinstance(seen, Exception):
        seen = seen.__context__  # Ends: Python keeps this chain free of loops.
    return seen


def is_local(master: str) -> bool:
    """Return whether `master` runs executors inside the driver's own JVM, on this machine.

    >>> is_local("local[*]"), is_local("spark://host:7077")
    (True, False)
    """
    return _LOCAL.fullmatch(master) is not None


def heap_bytes(memory_bytes: int) -> int:
    """Return the size of the JVM's heap on a machine of `memory_bytes`: a quarter, at least 1 and at most 8 GiB.

    >>> heap_bytes(24 << 30) >> 30
    6
    """
    return min(max(memory_bytes // 4, HEAP_BYTES_MIN), HEAP_BYTES_MAX)


def memory_bytes() -> int:
    """Return the memory that this process may use: the machine's, or the container's where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            return min(machine, int(Path(path).read_text(encoding="ascii")))
    return machine


def session_options(folder: Path, master: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session that keeps its files in `folder`; the caller's `options` win."""
    table = {option.key: option.value for option in OPTIONS if is_local(master) or option.key not in LOCAL_ONLY}
    places = {
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": f"{heap_bytes(memory_bytes()) >> 20}m",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }
    merged = table | places | dict(options)
    quiet = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()} -XX:-UsePerfData"
    merged["spark.driver.extraJavaOptions"] = f"{quiet} {merged.get('spark.driver.extraJavaOptions', '')}".strip()
    return merged


def _start(jvm: Jvm, folder: Path, app_name: str, master: str, options: Mapping[str, str]) -> SparkSession:
    java = find_java(os.environ)
    home = write_launcher(java, folder / "java")
    (folder / "log4j2.properties").write_text(_LOG_RULES, encoding="utf-8")
    (folder / "local").mkdir()
    settings = {**session_options(folder, master, options), "spark.app.name": app_name, "spark.master": master}

    def hurry() -> None:
        logging.disable(logging.CRITICAL)  # Py4J logs the call that was cut short, with its trace.
        jvm.kill()

    try:
        with held_signals(hurry) as hold_again, _environment(_launch_environment(home, master)):
            with _environment(jvm.start(SPARK_HOME, settings, folder)):
                SparkContext(conf=SparkConf().setAll(list(settings.items())))
                hold_again()
            spark = SparkSession.builder.getOrCreate()
    except Exception as error:
        what = f"Spark did not start on {master} with Java {java.major} ({java.program})"
        raise SessionError(f"{what}: {shorten(_first_line(error), 300)}") from error
    if not is_local(master):
        spark.sparkContext.addPyFile(str(zip_packages(folder / "brokerside.zip")))
    # A JVM that a signal ended cuts its connection, of which socketserver would print a traceback.
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    return spark


@contextlib.contextmanager
def _no_warning_of_the_end() -> Iterator[None]:
    """Keep pyspark from warning of a JVM that is gone when it stops; an interrupt kills one that hangs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
        yield


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _launch_environment(java_home: Path, master: str) -> dict[str, str | None]:
    path = os.environ.get("PYTHONPATH")
    return {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Another Spark's jars would not understand this pyspark.
        "SPARK_HOME": str(SPARK_HOME),
        # Would make the builder start a Connect client instead.
        "SPARK_REMOTE": None,
        "PYTHONPATH": (f"{_ROOT}{os.pathsep}{path}" if path else str(_ROOT)) if is_local(master) else path,
    }


@contextlib.contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set_environment(changes)
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def zip_packages(path: Path) -> Path:
    """Write our packages, sources and data files, as a zip that Python imports from; return `path`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            for file in sorted((_ROOT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(_ROOT))
    return path


def _stop(jvm: Jvm, spark: SparkSession | None) -> None:
    """Stop the session, if it came to be, and see its JVM end; with it goes all that Spark keeps on disk."""
    started = spark or SparkContext._active_spark_context
    gateway: Any = SparkContext._gateway
    # A JVM that died cannot be asked to stop; what is left to do is on this side.
    with contextlib.suppress(Exception), _no_warning_of_the_end():
        if started is not None:
            started.stop()
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.shutdown()
    jvm.end()
    SparkContext._gateway = None
    SparkContext._jvm = None
