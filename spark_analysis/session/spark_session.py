"""Start the one Spark session of a run, and end it without leaving anything behind.

What it decides: whose JVM the session uses. As a rule it is one of its own; under spark-submit the session joins the
JVM that is there, with all settings of the submission; a Spark Connect server has its own (connect.py).

Goals, most important first: the same rows on every master; it starts on a machine that has only Python; nothing on the
terminal and in the working folder that the user did not ask for.

How: a folder of the session's own (mode 0700, removed at the end) holds all that Spark wants to have on disk: the
launcher that serves as JAVA_HOME, the logging rules, the packages as a zip, the warehouse, the shuffle files. The
environment is changed only while the JVM starts, since that is when it is read, and put back at once. With a `local`
master the folder that holds our packages goes on the workers' PYTHONPATH, so that numba's compiled code stays cached
beside the sources; with every other master the packages are sent as a zip (archive.py), so that executors run this very
version whatever is installed over there.

Example:
    with spark_session(app_name="fleet", master="local[2]") as spark:
        spark.range(10).count()

Left out: a second session in one process, as Spark has one JVM per process.

Source: Spark 4.3.0 pyspark/java_gateway.py, pyspark/core/context.py; org.apache.spark.deploy.PythonRunner.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker.errors import UsageError, shorten
from spark_analysis.session.archive import ROOT, write_archive
from spark_analysis.session.cancel import cancel_jobs, interrupt_behind, job_error, own_logging
from spark_analysis.session.connect import connect_session
from spark_analysis.session.environment import changed_environment
from spark_analysis.session.java import SessionError, find_java, write_launcher
from spark_analysis.session.jvm import Jvm
from spark_analysis.session.masters import (
    MASTER_DEFAULT,
    chosen_master,
    is_connect,
    is_local,
    is_submitted,
    standalone_addresses,
)
from spark_analysis.session.reach import reach
from spark_analysis.session.settings import (
    OF_QUERIES,
    OF_THE_JVM,
    PYTHON,
    read_defaults,
    session_options,
    workers_python,
)
from spark_analysis.session.signals import held_signals, hurried_signals

SPARK_HOME: Final = Path(pyspark.__file__).parent

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
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
"""


@contextlib.contextmanager
def spark_session(
    *, app_name: str, master: str | None = None, options: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it and its JVM when the block ends, however it ends.

    `master` is a Spark master URL; without it the environment's counts, and at last `local[*]`
    (masters.py). `options` are Spark settings and win over those of settings.py. Raises `SessionError`
    when Java or Spark cannot be started, `UsageError` for a master that Spark does not know, for a
    setting that cannot be given here or when this process has a session already, and `JobError` in
    place of an error of Spark's that leaves the block.
    """
    if SparkContext._active_spark_context is not None:
        raise UsageError("this process has a Spark session already; stop it first, or use it")
    given = dict(options or {})
    with tempfile.TemporaryDirectory(prefix="brokerside-", ignore_cleanup_errors=True) as name, own_logging():
        jvm, folder = Jvm(), Path(name)
        if is_submitted(os.environ):
            session = _classic(jvm, partial(_join, folder, master, given))
        else:
            defaults = read_defaults(os.environ)
            chosen = chosen_master(master, os.environ, defaults)
            if is_connect(chosen):
                session = connect_session(chosen, app_name, given, folder)
            else:
                session = _classic(jvm, partial(_start, jvm, folder, app_name, chosen, given, defaults))
        try:
            with session as spark:
                yield spark
        except Exception as error:
            # On Ctrl-C the jobs are cancelled, and what then comes out is often a Java error.
            if interrupt := interrupt_behind(error):
                raise interrupt.with_traceback(None) from None
            raise


@contextlib.contextmanager
def _classic(jvm: Jvm, start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """Start a session that talks to a JVM; stop it, and the JVM if it is our own, when the block ends."""
    spark = None
    try:
        spark = start()
        with hurried_signals(partial(cancel_jobs, spark.sparkContext.cancelAllJobs, jvm.kill)):
            yield spark
    except Exception as error:
        if interrupt_behind(error) is not None:
            raise
        if jvm.was_killed:
            raise KeyboardInterrupt from None
        # Spark's errors ask the JVM for their text, which is about to end.
        if isinstance(error, PySparkException | Py4JError):
            raise job_error(error) from None
        raise
    finally:
        with held_signals(jvm.kill):
            _stop(jvm, spark)


def _start(
    jvm: Jvm, folder: Path, app_name: str, master: str, options: Mapping[str, str], defaults: Mapping[str, str]
) -> SparkSession:
    """Start a JVM of our own on `master`, and a session on it."""
    if addresses := standalone_addresses(master):
        reach("Spark master", addresses)
    java = find_java(os.environ)
    home = write_launcher(java, folder / "java")
    (folder / "log4j2.properties").write_text(_LOG_RULES, encoding="utf-8")
    (folder / "local").mkdir()
    settings = {"spark.app.name": app_name, **session_options(folder, master, options, defaults)}

    def hurry() -> None:
        logging.disable(logging.CRITICAL)  # Py4J logs the call that was cut short, with its trace.
        jvm.kill()

    python = workers_python(master, settings, os.environ)
    try:
        with held_signals(hurry) as hold_again, changed_environment(_launch_environment(home, master, python, options)):
            with changed_environment(jvm.start(SPARK_HOME, settings, folder)):
                context = _context({})
                hold_again()
            spark = SparkSession.builder.getOrCreate()
    except Exception as error:
        what = f"Spark did not start on {master} with Java {java.major} ({java.program})"
        raise SessionError(f"{what}: {shorten(_reason(error), 300)}") from error
    return _with_packages(spark, context, folder)


def _join(folder: Path, master: str | None, options: Mapping[str, str]) -> SparkSession:
    """Start a session in the JVM of the spark-submit that has started this program."""
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    own = submitted.get("spark.master") or MASTER_DEFAULT
    if master not in (None, own):
        raise UsageError(f"spark-submit runs this program on {own}; leave --master out, or give it to spark-submit")
    late = sorted(key for key in options if key in OF_THE_JVM)
    if late:
        raise UsageError(f"the JVM of spark-submit has started without {late[0]}; give it to spark-submit")
    ours = {option.key: option.value for option in OF_QUERIES if not submitted.contains(option.key)}
    if is_local(own):
        ours["spark.executorEnv.PYTHONPATH"] = _python_path()
    python = options.get(PYTHON)
    try:
        with (
            held_signals(lambda: None) as hold_again,
            changed_environment({} if python is None else {"PYSPARK_PYTHON": python}),
        ):
            context = _context({"spark.master": own, **ours, **options})
            hold_again()
            spark = SparkSession.builder.getOrCreate()
    except Exception as error:
        raise SessionError(f"Spark did not start on {own}: {shorten(_reason(error), 300)}") from error
    return _with_packages(spark, context, folder)


def _context(settings: Mapping[str, str]) -> SparkContext:
    """Return a new context with the settings of the JVM, and `settings` above them."""
    SparkContext._ensure_initialized()
    return SparkContext(conf=SparkConf().setAll(list(settings.items())))


def _with_packages(spark: SparkSession, context: SparkContext, folder: Path) -> SparkSession:
    if not is_local(str(context.master)):
        context.addPyFile(str(write_archive(folder)))
    # A JVM that a signal ended cuts its connection, of which socketserver would print a traceback.
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    return spark


@contextlib.contextmanager
def _no_warning_of_the_end() -> Iterator[None]:
    """Keep pyspark from warning of a JVM that is gone when it stops; an interrupt kills one that hangs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
        yield


def _reason(error: Exception) -> str:
    """Return the line of an error that says why: of Java's errors the second, behind the name of the call."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[1].removeprefix(": ") if isinstance(error, Py4JError) and len(lines) > 1 else lines[0]


def _launch_environment(
    java_home: Path, master: str, python: str | None, options: Mapping[str, str]
) -> dict[str, str | None]:
    return {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Another Spark's jars would not understand this pyspark.
        "SPARK_HOME": str(SPARK_HOME),
        # Would make the builder start a Connect client instead.
        "SPARK_REMOTE": None,
        "PYTHONPATH": _python_path() if is_local(master) else os.environ.get("PYTHONPATH"),
        "PYSPARK_SUBMIT_ARGS": submit_arguments(os.environ.get("PYSPARK_SUBMIT_ARGS", ""), master, options),
    }


def submit_arguments(arguments: str, master: str, options: Mapping[str, str]) -> str:
    """Return spark-submit's arguments of the environment with `master` and `options` above them.

    >>> submit_arguments("--jars a.jar pyspark-shell", "yarn", {"spark.executor.memory": "4g"})
    '--jars a.jar --master yarn --conf spark.executor.memory=4g pyspark-shell'
    """
    words = shlex.split(arguments) or ["pyspark-shell"]
    confs = (word for key, value in options.items() for word in ("--conf", f"{key}={value}"))
    return shlex.join([*words[:-1], "--master", master, *confs, words[-1]])


def _python_path() -> str:
    path = os.environ.get("PYTHONPATH")
    return f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)


def _stop(jvm: Jvm, spark: SparkSession | None) -> None:
    """Stop the session, if it came to be, and see its own JVM end; with it goes all that Spark keeps on disk."""
    started = spark or SparkContext._active_spark_context
    gateway: Any = SparkContext._gateway
    # A JVM that died cannot be asked to stop; what is left to do is on this side.
    with contextlib.suppress(Exception), _no_warning_of_the_end():
        if started is not None:
            started.stop()
    if is_submitted(os.environ):
        return  # The JVM ends after this program; another session may follow in it.
    with contextlib.suppress(Exception):
        if gateway is not None:
            gateway.shutdown()
    jvm.end()
    SparkContext._gateway = None
    SparkContext._jvm = None
