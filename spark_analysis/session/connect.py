"""Open a session on a Spark Connect server, with our packages sent to its workers.

What it decides: what a run on a server sets and sends. The server's JVM, its executors and their Python are there
already; the session gets the settings of queries, the caller's settings, and the packages as a zip.

Constraints: the session is released when the block ends; the server and its other sessions are left alone.

How: the server is asked for a connection before Spark's client, which tries again for ten minutes. Bars need nothing of
their own: tasks count what is done in files that this process sees, as on every master (tables/write.py); Spark's
progress handlers know tasks, not clusters. An interrupt cancels the session's operations with interruptAll.

Example: connect_session("sc://localhost", "fleet", {}, Path("/var/tmp"))

Left out: settings that are fixed when the server starts, such as the memory of its executors; they are refused.

Source: Spark 4.3.0 pyspark/sql/connect/session.py, client/core.py and client/artifact.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker.errors import UsageError, shorten
from spark_analysis.session.archive import write_archive
from spark_analysis.session.cancel import cancel_jobs, interrupt_behind, job_error
from spark_analysis.session.environment import changed_environment
from spark_analysis.session.java import SessionError
from spark_analysis.session.masters import connect_address
from spark_analysis.session.reach import REACH_SECONDS_MAX, reach
from spark_analysis.session.settings import OF_QUERIES
from spark_analysis.session.signals import held_signals, hurried_signals

_ALWAYS_ARROW: Final = "spark.sql.execution.arrow.pyspark."


@contextlib.contextmanager
def connect_session(url: str, app_name: str, options: Mapping[str, str], folder: Path) -> Iterator[SparkSession]:
    """Open a session on the server of `url`, and release it when the block ends; `folder` is the session's own.

    Raises `SessionError` for a server that cannot be used, `UsageError` for a setting that it does not take, and
    `JobError` in place of an error of Spark's that leaves the block.
    """
    client = _client(url)
    _reach(url)
    # By this variable pyspark's functions know that columns are for a server.
    with changed_environment({"SPARK_CONNECT_MODE_ENABLED": "1"}):
        spark = None
        try:
            spark = _open(client, url, app_name, options, folder)
            with hurried_signals(partial(cancel_jobs, spark.interruptAll)):
                yield spark
        except PySparkException as error:
            if interrupt_behind(error) is not None:
                raise
            raise job_error(error) from None
        finally:
            if spark is not None:
                with held_signals(lambda: None):
                    spark.stop()


def _client(url: str) -> Any:
    """Return the class of Connect's sessions, whose libraries come with an extra of their own."""
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        missing = shorten(next(iter(str(error).splitlines()), ""))
        raise SessionError(
            f"{url} needs Spark Connect's client: pip install 'brokerside[connect]' ({missing})"
        ) from None
    return ConnectSession


def _reach(url: str) -> None:
    address = connect_address(url)
    assert address is not None, "a master is checked first"
    reach("Spark Connect server", [address])
    _shake_hands(url, address)


def _shake_hands(url: str, address: tuple[str, int]) -> None:
    """Open and close a gRPC connection, with TLS if the URL asks for it; raise `SessionError` if nobody answers."""
    import grpc  # Comes with the extra `connect`, as the next line's module does.
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=REACH_SECONDS_MAX)
    except grpc.FutureTimeoutError:
        host, port = address
        raise SessionError(
            f"what listens at {host}:{port} is no Spark Connect server, or wants other parameters in its URL: "
            f"no gRPC connection within {REACH_SECONDS_MAX} s"
        ) from None
    finally:
        channel.close()


def _open(client: Any, url: str, app_name: str, options: Mapping[str, str], folder: Path) -> SparkSession:
    try:
        spark = cast("SparkSession", client.builder.remote(url).appName(app_name).create())
    except PySparkException as error:
        raise SessionError(f"Spark did not start on {url}: {shorten(_first_line(error), 300)}") from error
    for option in OF_QUERIES:
        if not option.key.startswith(_ALWAYS_ARROW):  # Of which the client would warn.
            spark.conf.set(option.key, option.value)
    for key, value in options.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            spark.stop()
            raise UsageError(
                f"{url} does not take {key}={shorten(value)}: {shorten(_first_line(error), 200)}"
            ) from None
    spark.addArtifacts(str(write_archive(folder)), pyfile=True)
    return spark


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
