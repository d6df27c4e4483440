"""Check the URL of a Spark master, and find the one that the environment names.

What it decides: which master a session runs on. The caller's own choice counts first, then spark-submit's, then
SPARK_REMOTE, then the arguments in PYSPARK_SUBMIT_ARGS, then spark-defaults.conf; without any it is `local[*]`.

Example: chosen_master(None, {"SPARK_REMOTE": "sc://spark.example.com"}, {}) is that Spark Connect server.

Left out: `local-cluster` masters keep their logs in the folder where pyspark is installed (Spark's own rule); they are
for tests.

Source: Spark 4.3.0 org.apache.spark.deploy.SparkSubmitArguments; sql/connect/docs/client-connection-string.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from broker.errors import UsageError, shorten

MASTER_DEFAULT: Final = "local[*]"
CONNECT_PORT_DEFAULT: Final = 15002
PORT_MAX: Final = 65_535

_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_CONNECT: Final = re.compile(r"sc://[^/\s;]+(/(;[^;=\s]+=[^;\s]*)*;?)?")
_MASTER: Final = re.compile(rf"{_LOCAL.pattern}|local-cluster\[\d+, *\d+, *\d+\]|(spark|k8s)://\S+|yarn")
_ALLOWED: Final = (
    "local, local[N], local[*], local-cluster[N,CORES,MIB], spark://HOST:PORT, k8s://URL, yarn or sc://HOST:PORT"
)


def chosen_master(given: str | None, environment: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    """Return the master to start Spark on: the `given` one, or the one of the environment or of spark-defaults.conf.

    Raises `UsageError` for a master that Spark does not know.

    >>> chosen_master(None, {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, {"spark.master": "local[2]"})
    'yarn'
    """
    named = (
        given,
        environment.get("SPARK_REMOTE"),
        submit_master(environment.get("PYSPARK_SUBMIT_ARGS", "")),
        defaults.get("spark.master"),
    )
    master = next((one for one in named if one is not None), MASTER_DEFAULT)
    check_master(master)
    return master


def check_master(master: str) -> None:
    """Raise `UsageError` for a master that Spark does not know."""
    if not (_MASTER.fullmatch(master) or (is_connect(master) and connect_address(master))):
        raise UsageError(f"a Spark master is {_ALLOWED}, not {shorten(master)!r}")


def submit_master(arguments: str) -> str | None:
    """Return the master among spark-submit's `arguments`, written as in a shell, or None.

    >>> submit_master("--conf spark.master=yarn pyspark-shell"), submit_master("pyspark-shell")
    ('yarn', None)
    """
    words, found = shlex.split(arguments), None
    for word, value in zip(words, [*words[1:], ""], strict=False):
        if word == "--master":
            return value
        if word.startswith("--master="):
            return word.removeprefix("--master=")
        if word == "--conf" and value.startswith("spark.master="):
            found = value.removeprefix("spark.master=")
    return found


def is_local(master: str) -> bool:
    """Return whether `master` runs executors inside the driver's own JVM, on this machine.

    >>> is_local("local[*]"), is_local("spark://host:7077")
    (True, False)
    """
    return _LOCAL.fullmatch(master) is not None


def is_connect(master: str) -> bool:
    """Return whether `master` is the connection string of a Spark Connect server.

    >>> is_connect("sc://localhost"), is_connect("spark://host:7077")
    (True, False)
    """
    return _CONNECT.fullmatch(master) is not None


def connect_address(master: str) -> tuple[str, int] | None:
    """Return host and port of a Spark Connect server, or None for a port that cannot be.

    >>> connect_address("sc://spark.example.com/;token=abc")
    ('spark.example.com', 15002)
    """
    try:
        parts = urlsplit(master)
        return (parts.hostname, parts.port or CONNECT_PORT_DEFAULT) if parts.hostname else None
    except ValueError:
        return None


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Return the host and port of each standalone master that a spark:// URL names; nothing for any other URL.

    A URL with a port that cannot be has none either: Spark says what is wrong with it.

    >>> standalone_addresses("spark://one:7077,two:7077"), standalone_addresses("local")
    ([('one', 7077), ('two', 7077)], [])
    """
    if not master.startswith("spark://"):
        return []
    pairs = [each.rpartition(":") for each in master.removeprefix("spark://").split(",")]
    is_known = all(host and port.isdecimal() and int(port) <= PORT_MAX for host, _, port in pairs)
    return [(host, int(port)) for host, _, port in pairs] if is_known else []


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Return whether spark-submit has started this program, beside a JVM with the settings of the submission."""
    return "PYSPARK_GATEWAY_PORT" in environment
