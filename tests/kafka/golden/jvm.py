"""Kafka's classes behind a pipe, asked for golden cases.

As `tests.kafka.jvm`, which says how Java and the jars are had.

Source: java/GoldenOracle.java, which names what can be asked.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from broker.releases import NEWEST, Release
from tests.kafka.jvm import JavaProcess, java_command
from tests.kafka.releases import version_of

Json: TypeAlias = Any


class GoldenJvm(JavaProcess[str]):
    """A running Java process that prints golden cases. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> GoldenJvm:
        """Start Java; raise KafkaUnavailableError, with the reason, where that cannot be had."""
        java, *class_path = java_command(build_directory, release)
        # Without the option, Java leaves out the message of an exception that its compiler finds to be thrown often.
        command = [java, "-XX:-OmitStackTraceInFastThrow", *class_path, "GoldenOracle"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="ascii")
        return cls(process, release)

    def source(self) -> str:
        """Return what the `source` of files says that this process printed."""
        versions = self.ask("versions", {})["expected"]
        assert versions["kafka"] == version_of(self.release), versions
        return f"Apache Kafka {versions['kafka']}, OpenJDK {versions['java']}"

    def ask(self, what: str, given: Json) -> Mapping[str, Json]:
        """Return `expected`, or `expected_error`, of the case whose input is `given`."""
        self._to_java.write(json.dumps({"what": what, "input": given}) + "\n")
        self._to_java.flush()
        line = self._from_java.readline()
        if not line:
            raise AssertionError("the Java process ended")
        answer: dict[str, Json] = json.loads(line)
        return answer
