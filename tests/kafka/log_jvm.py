"""Kafka's log classes in a Java process: kafka-dump-log, UnifiedLog, the cleaner, and how fast they are.

What it decides: how a test or a benchmark asks them. A call is a dict, an answer another; an exception
of Kafka's is an answer too, `KafkaAnswerError`, with the Java class and message.

Constraints: as of `jvm`: where Maven, the JDK or the jars cannot be had, `start` raises KafkaUnavailableError.

How
java/LogOracle.java reads one JSON object a line and prints one a line; java/LogProgram.java runs programs of
operations and writes what it saw as golden cases of kind `log`, which the golden runner then checks of ours.

Example:

    with KafkaLogs.start(build_directory) as kafka:
        text = kafka.dump([segment], "--deep-iteration").out

Left out: a broker.

Source: the classes called are named in java/Log*.java.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from broker.releases import NEWEST, Release
from tests.kafka.jvm import JavaProcess, java_command
from tests.kafka.releases import version_of


class KafkaAnswerError(Exception):
    """Kafka threw: the Java class and the message, None where it has none."""

    def __init__(self, java_class: str, message: str | None) -> None:
        self.java_class = java_class
        super().__init__(f"{java_class}: {message}")


@attrs.frozen
class Dumped:
    """What kafka-dump-log printed to both streams, and the class and message of an exception that ended it."""

    out: str
    err: str
    thrown: str | None = None
    message: str | None = attrs.field(default=None, eq=False)


class KafkaLogs(JavaProcess[str]):
    """A running Java process with Kafka's log classes. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> KafkaLogs:
        """Start Java; raises KafkaUnavailableError, with the reason, where that cannot be had."""
        command = [*java_command(build_directory, release), "LogOracle"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
        return cls(process, release)

    def version(self) -> str:
        """Return the release of Kafka that answers."""
        return str(self._call("version")["version"])

    def dump(self, files: Sequence[Path], *options: str) -> Dumped:
        """Run kafka-dump-log over `files`."""
        arguments = ["--files", ",".join(str(file) for file in files), *options]
        answer = self._call("dump", arguments=arguments)
        return Dumped(answer["out"], answer["err"], answer.get("thrown"), answer.get("message"))

    def open(
        self,
        directory: Path,
        config: Mapping[str, Any],
        *,
        clean: bool,
        recovery_point: int,
        log_start: int = 0,
        now_ms: int = 0,
    ) -> dict[str, Any]:
        """Open and close a partition's directory with UnifiedLog; return the golden `state` it came to."""
        return self._call(
            "open",
            directory=str(directory),
            config=dict(config),
            clean=clean,
            recoveryPoint=recovery_point,
            logStart=log_start,
            nowMs=now_ms,
        )

    def program(self, case: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Run the operations of `case` below `folder`; return it as a golden case, closed files kept in `folder`."""
        return {**self._call("program", case=dict(case), folder=str(folder)), "source": version_of(self.release)}

    def build(self, batches: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """Return the bytes of batches that are described as golden files describe them, built by Kafka."""
        return [b64decode(text) for text in self._call("build", batches=[dict(each) for each in batches])["built"]]

    def read(self, data: Sequence[bytes]) -> list[dict[str, Any]]:
        """Read each of `data` with MemoryRecords; return its `batches`, and the `exception` that ended the reading."""
        answer = self._call("read", data=[b64encode(each).decode("ascii") for each in data])
        outcomes: list[dict[str, Any]] = answer["outcomes"]
        return outcomes

    def metadata_image(self, records: Sequence[bytes]) -> list[bytes]:
        """Replay the values of metadata records; return those that Kafka writes of the image that comes out."""
        asked = [b64encode(record).decode("ascii") for record in records]
        return [b64decode(text) for text in self._call("metadata", records=asked)["records"]]

    def timing(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Return `wallNs` and `cpuNs` of each run, and what was done in it: see java/LogTimings.java."""
        return self._call("timing", what=what, **arguments)

    def _call(self, call: str, **arguments: Any) -> dict[str, Any]:
        self._to_java.write(json.dumps({"call": call, **arguments}) + "\n")
        self._to_java.flush()
        line = self._from_java.readline()
        if not line:
            raise AssertionError("the Java process ended")
        answer: dict[str, Any] = json.loads(line)
        if "exception" in answer:
            raise KafkaAnswerError(answer["exception"], answer.get("message"))
        return answer
