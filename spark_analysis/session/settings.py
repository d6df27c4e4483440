"""List the settings that a Spark session starts with, each with its reason.

What it decides: what is set where neither the caller nor the user's spark-defaults.conf says anything. A session that
spark-submit has started, or that a Spark Connect server holds, gets the settings of queries alone.

Goals, most important first: the same rows on every master; nothing on the terminal and in the working folder that the
user did not ask for; fast enough for a billion replicas on a laptop.

How: jobs send one row per broker, not per replica, through the JVM, and numpy holds one cluster at a time in each
worker, so the JVM gets a quarter of the memory that this process may use, at least 1 and at most 8 GiB: 2 GiB on a
laptop of 8 GiB, 6 GiB on one of 24. Workers run the interpreter of this process, unless the user names one, or sends
archives to another machine, in which an environment with an interpreter may be.

Source: Spark 4.3.0 docs/configuration.md; java.util.Properties for the syntax of spark-defaults.conf.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from broker.errors import InputError, UsageError, shorten
from spark_analysis.session.masters import is_local

HEAP_BYTES_MIN: Final = 1 << 30  # Below this the JVM itself, its class data and Arrow's buffers do not fit.
HEAP_BYTES_MAX: Final = 8 << 30  # A larger heap has nothing to hold and lengthens the pauses of its collector.
PYTHON: Final = "spark.pyspark.python"
ARCHIVES: Final = ("spark.archives", "spark.yarn.dist.archives")

_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.-]+")
_PROPERTY: Final = re.compile(r"(?P<key>[^\s=:]+)(?:\s*[=:]\s*|\s+|$)(?P<value>.*)")
_OWN_OPTIONS: Final = {"spark.master": "--master", "spark.remote": "--master"}


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
    Option("spark.sql.adaptive.enabled", "true", "Shuffles of few rows get few tasks; our own jobs hardly shuffle."),
    Option("spark.sql.parquet.compression.codec", "zstd", "A third smaller than snappy on these tables."),
    Option("spark.sql.ansi.enabled", "true", "An overflow is an error, not a wrong count."),
    Option("spark.serializer", "org.apache.spark.serializer.KryoSerializer", "Smaller shuffles than Java's own."),
)

LOCAL_ONLY: Final = frozenset({"spark.driver.bindAddress", "spark.driver.host"})
STATIC: Final = frozenset({"spark.sql.catalogImplementation"})  # Fixed once a JVM has started.


OF_QUERIES: Final = tuple(
    option for option in OPTIONS if option.key.startswith("spark.sql.") and option.key not in STATIC
)
"""What is set, too, in a session whose JVM somebody else has started."""

OF_THE_JVM: Final = frozenset(
    f"spark.driver.{name}" for name in ("memory", "extraJavaOptions", "extraClassPath", "extraLibraryPath")
)
"""What a JVM of the driver takes only when it starts."""


def parse_settings(given: Iterable[str]) -> dict[str, str]:
    """Return the Spark settings of words such as "spark.executor.memory=4g".

    Raises `UsageError` for a word that is no setting, a setting with an option of its own, and one given twice.

    >>> parse_settings(["spark.executor.memory=4g", "spark.executor.cores=2"])
    {'spark.executor.memory': '4g', 'spark.executor.cores': '2'}
    """
    settings: dict[str, str] = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not (equals and value and _KEY.fullmatch(key)):
            raise UsageError(f"--conf takes a Spark setting, spark.NAME=VALUE, not {shorten(word)!r}")
        if key in _OWN_OPTIONS:
            raise UsageError(f"--conf cannot set {key}; give {_OWN_OPTIONS[key]} {shorten(value)}")
        if settings.setdefault(key, value) != value:
            raise UsageError(f"--conf gives {key} two values, {shorten(settings[key])!r} and {shorten(value)!r}")
    return settings


def read_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of spark-defaults.conf in the folder SPARK_CONF_DIR; none where either is missing."""
    folder = environment.get("SPARK_CONF_DIR")
    path = Path(folder) / "spark-defaults.conf" if folder else None
    if path is None or not path.is_file():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", source=str(path)) from None
    found = (_PROPERTY.fullmatch(line.strip()) for line in lines if line.strip() and line.strip()[0] not in "#!")
    return {match["key"]: match["value"] for match in found if match is not None}


def workers_python(master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Return the interpreter of Python workers, or None to leave it to Spark: the one of an archive, or python3."""
    named = settings.get(PYTHON) or environment.get("PYSPARK_PYTHON")
    sends_archives = not is_local(master) and any(settings.get(key) for key in ARCHIVES)
    return named or (None if sends_archives else sys.executable)


def session_options(
    folder: Path, master: str, options: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return all settings of a session that keeps its files in `folder`.

    The caller's `options` win over `defaults`, those of spark-defaults.conf, and these over ours.
    """
    given = {**(defaults or {}), **options}
    table = {option.key: option.value for option in OPTIONS if is_local(master) or option.key not in LOCAL_ONLY}
    places = {
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": f"{heap_bytes(memory_bytes()) >> 20}m",
    }
    python = workers_python(master, given, os.environ)
    if python is not None:
        places |= {PYTHON: python, "spark.pyspark.driver.python": sys.executable}
    merged = table | places | given
    quiet = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()} -XX:-UsePerfData"
    merged["spark.driver.extraJavaOptions"] = f"{quiet} {merged.get('spark.driver.extraJavaOptions', '')}".strip()
    return merged


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
