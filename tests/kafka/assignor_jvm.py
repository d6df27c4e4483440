"""Kafka's own assignors behind a pipe: one Java process that answers one group after another.

As `tests.kafka.jvm`, which says how Java and the jars are had. Server-side assignors see topics by id, so that a group
for them names its topics by texts of ids.

Source: java/Assignors.java, which names the classes that are called.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from broker.releases import NEWEST, Release
from placement.consumer.group import Group
from tests.kafka.jvm import JavaProcess, KafkaError, java_command

ENDLESS: Final = "java.util.concurrent.TimeoutException"
"""What the Java process says it got from a call that did not end."""

Answer: TypeAlias = "dict[str, list[tuple[str, int]]] | KafkaError"


class AssignorJvm(JavaProcess[bytes]):
    """A running Java process with Kafka's assignors. Use it as a context manager, from one thread."""

    endless_count = 0
    """How many calls Kafka's own assignors did not end."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> AssignorJvm:
        """Start Java; raise KafkaUnavailableError, with the reason, where that cannot be had."""
        # The largest groups measured take some gigabytes of Java's objects.
        command = java_command(build_directory, release)
        # Without the option, Java leaves out the message of an exception that its compiler finds to be thrown often.
        command = [command[0], "-Xmx6g", "-XX:-OmitStackTraceInFastThrow", *command[1:], "Assignors"]
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL), release)

    def begin(self, assignor: str) -> None:
        """Let a new assignor of this name answer from now on."""
        self._to_java.write(b"N" + _text(assignor))

    def assign(self, group: Group) -> Answer:
        """Return the lists of the members that Kafka names, or what it threw."""
        self._to_java.write(b"A" + encoded(group))
        self._to_java.flush()
        if self._read(1) == b"\x01":
            error = KafkaError(self._string() or "", self._string())
            self.endless_count += error.java_class == ENDLESS
            return error
        answer = {}
        for _ in range(self._int()):
            member = self._string() or ""
            pairs = np.frombuffer(self._read(8 * self._int()), ">i4").reshape(-1, 2).tolist()
            answer[member] = [(group.topics[topic], partition) for topic, partition in pairs]
        return answer

    def cpu_ns(self, group: Group, rounds: int) -> list[int]:
        """Return the CPU nanoseconds of the calling thread for each of `rounds` calls, each on new objects."""
        self._to_java.write(b"T" + struct.pack(">i", rounds) + encoded(group))
        self._to_java.flush()
        return [int(struct.unpack(">qi", self._read(12))[0]) for _ in range(rounds)]

    def walked_set(self, hashes: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return a HashSet's first hash after each of `hashes` is put in, or taken out if there, and its last order."""
        self._to_java.write(b"S" + struct.pack(f">{1 + len(hashes)}i", len(hashes), *hashes))
        self._to_java.flush()
        first = [self._int() for _ in hashes]
        return first, [self._int() for _ in range(self._int())]

    def _read(self, count: int) -> bytes:
        answer = self._from_java.read(count)
        if len(answer) != count:
            raise AssertionError("the Java process ended; run it by hand to see why")
        return answer

    def _int(self) -> int:
        return int(struct.unpack(">i", self._read(4))[0])

    def _string(self) -> str | None:
        count = self._int()
        return None if count < 0 else self._read(2 * count).decode("utf-16-be", "surrogatepass")


def encoded(group: Group) -> bytes:
    """Return a group as java/Assignors.java reads it."""
    parts = [struct.pack(">i", len(group.topics))]
    starts = group.partition_starts.tolist()
    sets, codes = group.replica_racks.sets, group.replica_racks.codes.tolist()
    for topic, (name, count) in enumerate(zip(group.topics, group.partition_counts.tolist(), strict=True)):
        parts += [_text(name), struct.pack(">i", count)]
        rows = [sets[code] for code in codes[starts[topic] : starts[topic + 1]]]
        if not any(rows):
            parts.append(struct.pack(">i", -1))
        else:
            parts.append(struct.pack(">i", len(rows)))
            for row in rows:
                parts += [struct.pack(">i", len(row)), *map(_text, sorted(row))]
    parts.append(struct.pack(">i", len(group.members)))
    numbers, starts = group.owned_numbers, group.owned_topics.starts.tolist()
    for place, member in enumerate(group.members):
        owned = np.stack([group.owned_topics.row(place), numbers[starts[place] : starts[place + 1]]], axis=1)
        generations = (int(group.generations[place]), int(group.subscription_generations[place]))
        parts += [_text(member), _text(group.instance_ids[place]), _text(group.member_racks[place])]
        parts += [struct.pack(">2i", *generations), _ints(group.subscribed.row(place)), _ints(owned.ravel())]
    return b"".join(parts)


def _ints(values: np.ndarray) -> bytes:
    return struct.pack(">i", len(values)) + values.astype(">i4").tobytes()


def _text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">i", -1)
    units = value.encode("utf-16-be", "surrogatepass")
    return struct.pack(">i", len(units) // 2) + units
