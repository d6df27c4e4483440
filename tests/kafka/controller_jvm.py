"""Kafka's own controller behind a pipe: one Java process that runs one history of events after another.

As `tests.kafka.jvm`, which says how Java and the jars are had. What runs are the managers of QuorumController
(ReplicationControlManager, ClusterControlManager, ConfigurationControlManager, FeatureControlManager), each record
applied to them as it is written; there is no quorum.

Source: java/since_4_1/ControllerHistory.java, which names the calls.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from broker.releases import NEWEST, Release
from tests.kafka.jvm import JavaProcess, KafkaUnavailableError, java_command

OLDEST: Final = Release("4.1")
"""The oldest release whose managers java/since_4_1/ControllerHistory.java can build."""


class ControllerJvm(JavaProcess[bytes]):
    """A running Java process with Kafka's controller. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> ControllerJvm:
        """Start Java; raise KafkaUnavailableError, with the reason, where that cannot be had."""
        if release < OLDEST:
            raise KafkaUnavailableError(f"the controller of {release} is not run; {OLDEST} and later are")
        command = [*java_command(build_directory, release), "Controllers"]
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL), release)

    def run(self, steps: Sequence[bytes], *, elr: bool) -> list[str]:
        """Return, for each step of a new history, the answer and on the next lines brokers and partitions."""
        self._to_java.write(struct.pack(">?i", elr, len(steps)) + b"".join(steps))
        self._to_java.flush()
        return [self._string() for _ in steps]

    def _string(self) -> str:
        (count,) = struct.unpack(">i", self._read(4))
        return self._read(2 * count).decode("utf-16-be")

    def _read(self, count: int) -> bytes:
        answer = self._from_java.read(count)
        if len(answer) != count:
            raise AssertionError("the Java process ended; run it by hand to see why")
        return answer


def encoded(kind: str, *values: bool | int | str | Sequence[int] | Sequence[Sequence[int]]) -> bytes:
    """Return a step as java/since_4_1/Controllers.java reads it; `kind` is its letter."""
    return kind.encode() + b"".join(map(_encoded, values))


def _encoded(value: bool | int | str | Sequence[int] | Sequence[Sequence[int]]) -> bytes:
    if isinstance(value, bool):
        return struct.pack(">?", value)
    if isinstance(value, int):
        return struct.pack(">i", value)
    if isinstance(value, str):
        units = value.encode("utf-16-be")
        return struct.pack(">i", len(units) // 2) + units
    return struct.pack(">i", len(value)) + _all(value)


def _all(values: Iterable[int | Sequence[int]]) -> bytes:
    return b"".join(map(_encoded, values))
