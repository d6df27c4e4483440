"""Start the JVM that Spark's Python side talks to, and end it with every process that it has started.

What it decides: when the JVM lives. It is started here, not by pyspark, so that it is known from its first moment on:
an interrupt of pyspark's own launch leaves a JVM that nobody ends.

Constraints: the JVM and the shells that lead to it are a process group of their own, which a terminal's Ctrl-C does
not reach, and which is killed as a whole. If this process dies, the JVM's standard input closes, and it ends itself.

How: spark-submit gets a file's name in its environment, and the JVM writes its port and its secret there once it
listens. pyspark connects to a JVM that PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET name.

Left out: Windows, where spark-submit is another script.

Source: Spark 4.3.0 pyspark/java_gateway.py and org.apache.spark.api.python.PythonGatewayServer.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

STOP_SECONDS_MAX: Final = 20  # A JVM that has not ended by then is killed.
POLL_SECONDS: Final = 0.05
CONNECTION_FILE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_LENGTH: Final = struct.Struct(">i")


class Jvm:
    """Run the JVM of one session; it is started at most once and ended for good."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.was_killed = False

    def start(self, spark_home: Path, options: Mapping[str, str], folder: Path) -> dict[str, str]:
        """Start the JVM with Spark's `options`; return the environment by which pyspark finds it.

        The caller has set the environment that spark-submit reads; `folder` is the session's own. Raises OSError or
        RuntimeError if the JVM does not come to listen.
        """
        assert self._process is None, "a Jvm starts once"
        connection = folder / "connection"
        self._process = subprocess.Popen(
            spark_submit(spark_home, options, os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")),
            stdin=subprocess.PIPE,
            env=os.environ | {"SPARK_CONNECT_MODE": "0", CONNECTION_FILE: str(connection)},
            start_new_session=True,
        )
        if self.was_killed:  # Between the start and the line above.
            self.kill()
        while not connection.is_file():  # Ends: the JVM writes it, ends, or is killed.
            status = self._process.poll()
            if status is not None:
                raise RuntimeError(f"the JVM ended with status {status} before it listened")
            time.sleep(POLL_SECONDS)
        port, secret = read_connection(connection.read_bytes())
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def kill(self) -> None:
        """Kill the JVM and its child processes at once, even a JVM that is only starting."""
        self.was_killed = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies.
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Let the JVM end and wait until it is gone; kill it if it does not end."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()  # The JVM ends when its parent's pipe does.
        try:
            self._process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()


def spark_submit(spark_home: Path, options: Mapping[str, str], arguments: str) -> Sequence[str]:
    """Return the command that starts a JVM for pyspark; `arguments` are written as in a shell."""
    settings = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    return [str(spark_home / "bin" / "spark-submit"), *settings, *shlex.split(arguments)]


def read_connection(data: bytes) -> tuple[int, str]:
    """Return the port and the secret that the JVM has written: an int, and a string behind its length."""
    port, length = _LENGTH.unpack_from(data, 0)[0], _LENGTH.unpack_from(data, _LENGTH.size)[0]
    return port, data[2 * _LENGTH.size : 2 * _LENGTH.size + length].decode()
