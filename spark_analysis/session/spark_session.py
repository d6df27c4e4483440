"""Start the Spark session of a run with `SparkSession.builder`, and end it with its JVM and its files.

A session starts a JVM on a Java found here, joins the JVM of spark-submit with the settings of the submission, or
connects to a Spark Connect server. A folder of its own, removed at the end, holds what Spark keeps on disk. Executors
on other machines get our packages as a zip, so that they run this very version; those of this machine import them from
where they are, beside numba's cache.

Source: Spark 4.3.0 pyspark/java_gateway.py, pyspark/core/context.py, pyspark/sql/connect/session.py.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PythonException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from broker.errors import BrokersideError, UsageError, shorten
from spark_analysis.session.archive import ROOT, write_archive
from spark_analysis.session.java import SessionError, find_java, write_launcher
from spark_analysis.session.settings import (
    ARCHIVES,
    MASTER,
    OF_QUERIES,
    OF_THE_JVM,
    PYTHON,
    chosen_master,
    environment_settings,
    is_connect,
    is_local,
    is_submitted,
    session_options,
)

REACH_SECONDS_MAX: Final = 10  # Spark's own clients try for minutes.
STOP_SECONDS_MAX: Final = 20  # A JVM that has not stopped by then is killed.
INTERRUPT_SECONDS_MAX: Final = 3  # The same after an interrupt.
CONNECT_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
_ALWAYS_ARROW: Final = "spark.sql.execution.arrow.pyspark."
_JAVA_PREFIX: Final = re.compile(r"^(Caused by)?: (org\.apache\.spark\.\w+: )?")
_LOG_RULES: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# Named, or Spark announces that it changes this one's level.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# Warns of a job that no executor takes: otherwise it waits without end and without a word.
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = warn
# What goes wrong in a task reaches the driver as an exception; printed once is enough.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.context.name = org.apache.spark.TaskContextImpl
logger.context.level = off
logger.writer.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.writer.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
"""


class JobError(BrokersideError):
    """Report that a Spark job failed, neither by its input nor by the model; a note holds Spark's trace."""

    definite = False  # Other jobs of the session have done their work.


@contextlib.contextmanager
def spark_session(
    *, app_name: str, master: str | None = None, options: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it and its JVM when the block ends, however it ends.

    `master` is a Spark master URL; without it the environment's counts, and at last `local[*]`. `options` are Spark
    settings and win over all others. Raises `SessionError` when Java or Spark cannot be started, `UsageError` for a
    master that Spark does not know, for a setting that cannot be given here or when this process has a session already,
    and `JobError` in place of an error of Spark's that leaves the block.
    """
    if SparkContext._active_spark_context is not None:
        raise UsageError("this process has a Spark session already; stop it first, or use it")
    given = dict(options or {})
    seconds_max = STOP_SECONDS_MAX
    logging.getLogger().addFilter(_is_ours)
    with tempfile.TemporaryDirectory(prefix="brokerside-", ignore_cleanup_errors=True) as name, _environment():
        spark = None
        try:
            with _held_signals(), _environment():
                spark = _started(Path(name), app_name, master, given)
            if _is_connected(spark):
                os.environ[CONNECT_MODE] = "1"  # By this pyspark's functions know that columns are for a server.
            with _cancelling_jobs(spark):
                yield spark
        except BaseException as error:
            if (interrupt := _interrupt_behind(error)) is not None:
                seconds_max = INTERRUPT_SECONDS_MAX
                raise interrupt.with_traceback(None) from None
            if isinstance(error, PySparkException | Py4JError):
                raise job_error(error) from None  # Before the JVM ends, which is asked for the text.
            raise
        finally:
            with _held_signals():
                _stop(spark, seconds_max)
            logging.getLogger().removeFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    """Return whether a log record is not Py4J's trace of a call that an interrupt cut short."""
    return "while sending command" not in record.getMessage()


def _is_connected(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _started(folder: Path, app_name: str, master: str | None, given: Mapping[str, str]) -> SparkSession:
    if is_submitted(os.environ):
        return _joined(folder, master, given)
    settings = environment_settings(os.environ)
    chosen = chosen_master(master, os.environ, settings)
    if is_connect(chosen):
        return _connected(chosen, app_name, given, folder)
    return _launched(folder, app_name, chosen, {**settings, **given})


def _launched(folder: Path, app_name: str, master: str, given: Mapping[str, str]) -> SparkSession:
    """Start a JVM on `master`, and a session on it."""
    if match := re.fullmatch(r"spark://([^:,]+):(\d{1,5})", master):
        _reach("Spark master", match[1], int(match[2]))
    java = find_java(os.environ)
    (folder / "log4j2.properties").write_text(_LOG_RULES, encoding="utf-8")
    (folder / "local").mkdir()
    settings: dict[str, Any] = session_options(folder, master, given)
    python = given.get(PYTHON) or os.environ.get("PYSPARK_PYTHON")
    if python is None and (is_local(master) or not any(given.get(key) for key in ARCHIVES)):
        python = sys.executable
    if python is not None:
        settings[PYTHON] = os.environ["PYSPARK_PYTHON"] = python
    if is_local(master):
        settings.setdefault("spark.executorEnv.PYTHONPATH", _python_path())
    os.environ |= {
        "JAVA_HOME": str(write_launcher(java, folder / "java")),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),  # Another Spark's jars would not understand this pyspark.
    }
    os.environ.pop("SPARK_REMOTE", None)  # Would make the builder start a Connect client instead.
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) or ["pyspark-shell"]
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*words[:-1], "--master", master, words[-1]])
    try:
        # A process group of its own, which a terminal's Ctrl-C does not reach.
        gateway = cast("Any", launch_gateway)(
            SparkConf(False).setAll(list(settings.items())), {"start_new_session": True}
        )
        SparkContext._ensure_initialized(gateway=gateway)
        spark = SparkSession.builder.appName(app_name).config(map=settings).getOrCreate()
    except Exception as error:
        what = f"Spark did not start on {master} with Java {java.major} ({java.program})"
        raise SessionError(f"{what}: {shorten(_reason(error), 300)}") from error
    return _with_packages(spark, folder)


def _joined(folder: Path, master: str | None, given: Mapping[str, str]) -> SparkSession:
    """Start a session in the JVM of the spark-submit that has started this program."""
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    own = str(submitted.get(MASTER))
    if master not in (None, own):
        raise UsageError(f"spark-submit runs this program on {own}; leave --master out, or give it to spark-submit")
    if late := sorted(key for key in given if key in OF_THE_JVM):
        raise UsageError(f"the JVM of spark-submit has started without {late[0]}; give it to spark-submit")
    settings = {option.key: option.value for option in OF_QUERIES if not submitted.contains(option.key)}
    if is_local(own):
        settings["spark.executorEnv.PYTHONPATH"] = _python_path()
    if python := given.get(PYTHON):
        os.environ["PYSPARK_PYTHON"] = python
    try:
        spark = SparkSession.builder.config(map={**settings, **given}).getOrCreate()
    except Exception as error:
        raise SessionError(f"Spark did not start on {own}: {shorten(_reason(error), 300)}") from error
    return _with_packages(spark, folder)


def _connected(url: str, app_name: str, given: Mapping[str, str], folder: Path) -> SparkSession:
    """Open a session on a Spark Connect server, which has its JVM, its executors and their Python already."""
    try:
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        missing = shorten(str(error).split("\n")[0])
        raise SessionError(f"{url} needs Spark Connect's client: pip install 'pyspark[connect]' ({missing})") from None
    builder = DefaultChannelBuilder(url)
    host, _, port = str(builder.endpoint).rpartition(":")
    _reach("Spark Connect server", host, int(port))
    with contextlib.closing(builder.toChannel()) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=REACH_SECONDS_MAX)
        except grpc.FutureTimeoutError:
            raise SessionError(
                f"what listens at {builder.endpoint} is no Spark Connect server, or wants other parameters in its URL: "
                f"no gRPC connection within {REACH_SECONDS_MAX} s"
            ) from None
    os.environ[CONNECT_MODE] = "1"
    ours = {option.key: option.value for option in OF_QUERIES if not option.key.startswith(_ALWAYS_ARROW)}
    try:
        spark = cast("SparkSession", ConnectSession.builder.remote(url).appName(app_name).create())
    except PySparkException as error:
        raise SessionError(f"Spark did not start on {url}: {shorten(_reason(error), 300)}") from error
    for key, value in {**ours, **given}.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            spark.stop()
            raise UsageError(f"{url} does not take {key}={shorten(value)}: {shorten(_reason(error), 200)}") from None
    spark.addArtifacts(str(write_archive(folder)), pyfile=True)
    return spark


def _reach(what: str, host: str, port: int) -> None:
    """Raise `SessionError` if nobody listens there."""
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS_MAX).close()
    except OSError as error:
        reason = (error.strerror or f"no answer within {REACH_SECONDS_MAX} s").lower()
        raise SessionError(f"no {what} can be reached at {host}:{port}: {reason}") from None


def _with_packages(spark: SparkSession, folder: Path) -> SparkSession:
    context = spark.sparkContext
    if not is_local(str(context.master)):
        context.addPyFile(str(write_archive(folder)))
    # A JVM that was killed cuts its connection, of which socketserver would print a traceback.
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    return spark


def _python_path() -> str:
    path = os.environ.get("PYTHONPATH")
    return f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Put back the environment of this process when the block ends."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _signals_to(handle: Callable[[int, Callable[[], object]], None]) -> Iterator[None]:
    """Give SIGINT and SIGTERM to `handle` in the block, with a call of the former handler; put the former back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before: dict[int, Any] = {number: former for number, former in found.items() if callable(former)}

    def forward(number: int, frame: FrameType | None) -> None:
        handle(number, partial(before[number], number, frame))

    for number in before:
        signal.signal(number, forward)
    try:
        yield
    finally:
        for number, former in found.items():
            if former is not None:  # Somebody else than Python has set it.
                signal.signal(number, former)


@contextlib.contextmanager
def _held_signals() -> Iterator[None]:
    """Hold SIGINT and SIGTERM until the block ends: half a session would be left of an interrupted start or stop."""
    arrived: list[int] = []
    with _signals_to(lambda number, _: arrived.append(number)):
        yield
    if arrived:
        signal.raise_signal(arrived[0])


@contextlib.contextmanager
def _cancelling_jobs(spark: SparkSession) -> Iterator[None]:
    """Cancel all jobs when SIGINT or SIGTERM arrives, as pyspark waits for the end of some before it raises.

    Another thread asks the JVM, on its own connection; a JVM that does not answer is killed, which ends every wait.
    """
    process: Any = getattr(SparkContext._gateway, "proc", None)

    def cancel() -> None:
        with contextlib.suppress(Exception):  # The JVM may be gone by then.
            spark.interruptAll() if _is_connected(spark) else spark.sparkContext.cancelAllJobs()

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def handle(_: int, former: Callable[[], object]) -> None:
        for thread in (threading.Thread(target=cancel), threading.Timer(INTERRUPT_SECONDS_MAX, kill)):
            thread.daemon = True
            thread.start()
        former()

    with _signals_to(handle):
        yield


def _interrupt_behind(error: BaseException) -> BaseException | None:
    """Return the KeyboardInterrupt, or what else is no error, that was on its way out when `error` came up."""
    seen: BaseException | None = error
    while isinstance(seen, Exception):
        seen = seen.__context__  # Ends: Python keeps this chain free of loops.
    return seen


def _stop(spark: SparkSession | None, seconds_max: float) -> None:
    """Stop the session and see its own JVM end; kill a JVM that does not end in time.

    Another thread asks the JVM, on its own connection: an interrupted call has left this thread's in the middle.
    """
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)

    def ask() -> None:
        with contextlib.suppress(Exception):  # A JVM that died cannot be asked to stop.
            started = spark or SparkContext._active_spark_context
            if started is not None:
                started.stop()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds_max)
    if process is None:
        return  # The JVM is spark-submit's, or the server's.
    with contextlib.suppress(OSError):
        cast("Any", process.stdin).close()  # The JVM ends when its parent's pipe does.
    try:
        process.wait(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def job_error(error: Exception) -> JobError:
    """Return a JobError with one line of Spark's error; the whole error is a note, which a traceback shows."""
    text = str(error)
    lines = [line.strip() for line in text.split("JVM stacktrace:")[0].splitlines() if line.strip()] or [repr(error)]
    # An error of our own function stands at the end of the worker's trace, any other in the first line.
    line = lines[-1 if isinstance(error, PythonException) else 0]
    if isinstance(error, Py4JError) or line.endswith(":"):
        reasons = (each.strip() for each in text.splitlines() if each.startswith((": ", "Caused by: ")))
        line = _JAVA_PREFIX.sub("", next((each for each in reasons if not each.endswith(":")), line))
    failure = JobError(f"a Spark job failed: {shorten(line, 300)}")
    failure.add_note(text)
    return failure


def _reason(error: Exception) -> str:
    """Return the line of an error that says why: of Java's errors the second, behind the name of the call."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[1].removeprefix(": ") if isinstance(error, Py4JError) and len(lines) > 1 else lines[0]
