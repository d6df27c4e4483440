"""Kafka's reassignment classes in a Java process: how a file is read, how a move starts and when it completes.

What it decides: how a test asks PartitionReassignmentReplicas and ReassignPartitionsCommand.

Constraints: as of `jvm`: where Maven, the JDK or the jars cannot be had, `start` raises KafkaUnavailableError.

How: java/reassign/Reassignments.java reads one JSON object a line and prints one a line.

Example:

    with KafkaReassignments.start(build_directory) as kafka:
        started = kafka.moved([([1, 2], [2, 3], [1, 2, 3])])

Left out: the controller's check that brokers are registered; the real cluster makes it.

Source: the classes called are named in java/reassign.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from broker.releases import NEWEST, Release
from tests.kafka.jvm import COMPILE_SECONDS_MAX, JavaProcess, _run, _tool, class_path_of
from tests.kafka.releases import JAVA_SOURCES, version_of


class KafkaRefusedError(Exception):
    """Kafka refused a file; the text is its message."""


@attrs.frozen
class Moved:
    """How Kafka starts a move, and what it completes to with the ISR given; None where it does not complete."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]
    done_replicas: list[int] | None
    done_isr: list[int] | None


class KafkaReassignments(JavaProcess[str]):
    """A running Java process with Kafka's reassignment classes. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> KafkaReassignments:
        """Start Java; raises KafkaUnavailableError, with the reason, where that cannot be had."""
        java, javac, maven = (_tool(name) for name in ("java", "javac", "mvn"))
        built = build_directory / f"reassign-{version_of(release)}"
        built.mkdir(parents=True, exist_ok=True)
        pom = JAVA_SOURCES / "cluster" / "pom.xml"
        class_path = class_path_of(maven, pom, built / "class-path.txt", f"-Dkafka.version={version_of(release)}")
        classes = built / "classes"
        classes.mkdir(exist_ok=True)
        files = [str(each) for each in sorted((JAVA_SOURCES / "reassign").glob("*.java"))]
        _run([javac, "-nowarn", "-cp", class_path, "-d", str(classes), *files], COMPILE_SECONDS_MAX)
        command = [java, "-cp", f"{classes}:{class_path}", "org.apache.kafka.controller.Reassignments"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8")
        return cls(process, release)

    def parsed(self, text: str) -> list[dict[str, Any]]:
        """Return the partitions that kafka-reassign-partitions --execute reads of a file; raise KafkaRefusedError."""
        partitions: list[dict[str, Any]] = self._call(call="parse", text=text)["partitions"]
        return partitions

    def moved(self, rows: Sequence[tuple[list[int], list[int], list[int]]]) -> list[Moved]:
        """Return what Kafka makes of moves, each from current replicas to a target with an ISR."""
        asked = [{"current": current, "target": target, "isr": isr} for current, target, isr in rows]
        return [
            Moved(row["replicas"], row["adding"], row["removing"], row.get("doneReplicas"), row.get("doneIsr"))
            for row in self._call(call="move", rows=asked)["rows"]
        ]

    def _call(self, **request: Any) -> dict[str, Any]:
        self._to_java.write(json.dumps(request) + "\n")
        self._to_java.flush()
        line = self._from_java.readline()
        if not line:
            raise AssertionError("the Java process ended")
        answer: dict[str, Any] = json.loads(line)
        if "exception" in answer:
            raise KafkaRefusedError(answer["message"])
        return answer
