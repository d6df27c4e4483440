"""List the settings that a Spark session starts with, each with its reason.

What the caller gives wins over PYSPARK_SUBMIT_ARGS, this over spark-defaults.conf, and this over ours. A session that
spark-submit has started, or that a Spark Connect server holds, gets our settings of queries alone.

Source: Spark 4.3.0 docs/configuration.md; java.util.Properties for the syntax of spark-defaults.conf.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from broker.errors import InputError, UsageError, shorten

MASTER_DEFAULT: Final = "local[*]"
MASTER: Final = "spark.master"
ARCHIVES: Final = ("spark.archives", "spark.yarn.dist.archives")  # In which an interpreter may be.
PYTHON: Final = "spark.pyspark.python"
HEAP_BYTES_MIN: Final = 1 << 30  # Below this the JVM itself, its class data and Arrow's buffers do not fit.
HEAP_BYTES_MAX: Final = 8 << 30  # A larger heap has nothing to hold and lengthens the pauses of its collector.

_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.-]+")
_PROPERTY: Final = re.compile(r"(?P<key>[^\s=:]+)(?:\s*[=:]\s*|\s+|$)(?P<value>.*)")
_OWN_OPTIONS: Final = {MASTER: "--master", "spark.remote": "--master"}
_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_CONNECT: Final = re.compile(r"sc://[^/\s;:]+(:\d{1,4}|:[1-5]\d{4})?(/(;[^;=\s]+=[^;\s]*)*;?)?")
_MASTER: Final = re.compile(
    rf"{_LOCAL.pattern}|{_CONNECT.pattern}|local-cluster\[\d+, *\d+, *\d+\]|(spark|k8s)://\S+|yarn"
)
_ALLOWED: Final = (
    "local, local[N], local[*], local-cluster[N,CORES,MIB], spark://HOST:PORT, k8s://URL, yarn or sc://HOST:PORT"
)


@attrs.frozen
class Option:
    """One Spark setting: its key, its value and the reason for the value."""

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
    Option(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        str((1 << 31) - 1),  # The one value that asks for no bound but that of rows.
        "With a bound Spark measures the batch at every row, and of null lists each row before it again.",
    ),
    Option("spark.sql.adaptive.enabled", "true", "Shuffles of few rows get few tasks; our own jobs hardly shuffle."),
    Option("spark.sql.parquet.compression.codec", "zstd", "A third smaller than snappy on these tables."),
    Option("spark.sql.ansi.enabled", "true", "An overflow is an error, not a wrong count."),
    Option("spark.serializer", "org.apache.spark.serializer.KryoSerializer", "Smaller shuffles than Java's own."),
)

LOCAL_ONLY: Final = frozenset({"spark.driver.bindAddress", "spark.driver.host"})
OF_QUERIES: Final = tuple(
    option
    for option in OPTIONS
    if option.key.startswith("spark.sql.") and option.key != "spark.sql.catalogImplementation"
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


def environment_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of spark-defaults.conf in SPARK_CONF_DIR, with those of PYSPARK_SUBMIT_ARGS above them."""
    words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", "").replace("--master=", "--master "))
    named = {"--conf": "", "--master": f"{MASTER}="}
    given = [f"{named[word]}{value}".partition("=") for word, value in pairwise(words) if word in named]
    return {**_defaults(environment), **{key: value for key, _, value in given}}


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
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


def chosen_master(given: str | None, environment: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Return the master: the `given` one, SPARK_REMOTE, the one of the environment's settings, or `local[*]`.

    Raises `UsageError` for a master that Spark does not know.
    """
    named = (given, environment.get("SPARK_REMOTE"), settings.get(MASTER))
    master = next((one for one in named if one is not None), MASTER_DEFAULT)
    if not _MASTER.fullmatch(master):
        raise UsageError(f"a Spark master is {_ALLOWED}, not {shorten(master)!r}")
    return master


def is_local(master: str) -> bool:
    """Return whether `master` runs executors inside the driver's own JVM, on this machine."""
    return _LOCAL.fullmatch(master) is not None


def is_connect(master: str) -> bool:
    """Return whether `master` is the connection string of a Spark Connect server."""
    return master.startswith("sc://")


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Return whether spark-submit has started this program, beside a JVM with the settings of the submission."""
    return "PYSPARK_GATEWAY_PORT" in environment


def session_options(folder: Path, master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session that keeps its files in `folder`; those `given` win over ours."""
    options = {option.key: option.value for option in OPTIONS if is_local(master) or option.key not in LOCAL_ONLY}
    options |= {
        MASTER: master,
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": f"{heap_bytes() >> 20}m",
        **given,
    }
    log_rules = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()} -XX:-UsePerfData"
    options["spark.driver.extraJavaOptions"] = f"{log_rules} {options['spark.driver.extraJavaOptions']}"
    return options


def heap_bytes() -> int:
    """Return the size of the JVM's heap: a quarter of the machine's or container's memory, from 1 to 8 GiB."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        memory_bytes = min(memory_bytes, int(_CGROUP_LIMIT.read_text(encoding="ascii")))
    return min(max(memory_bytes // 4, HEAP_BYTES_MIN), HEAP_BYTES_MAX)
