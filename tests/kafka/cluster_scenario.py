"""One scenario of a real cluster: codecs, transactions, kills, a rack lost, a reassignment, a deletion.

Every record that was acknowledged is known with its offset; directories that we recovered, compacted or made are served
by a released broker, and read by a released consumer. Six nodes, two a rack. Node 6 is killed, its directory recovered
by us, `keys` compacted and `made` written anew, before a broker starts on it with the marker of a clean shutdown. Rack
b is lost with a reassignment onto it under way. A moment is taken when kafka-topics prints the same before and after
the quorum was asked for its high watermark.

Example: run_scenario(folder, NEWEST).moments[0].text
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
from click.testing import CliRunner

from broker.entropy import SplitMix64
from broker.ids import Offset
from broker.releases import Release
from broker.units import DurationMs, SizeBytes, TimeMs
from log import BatchSpec, Codec, LogConfig, PartitionLog
from log.cli.main import log as log_command
from log.log_dir import LogDir, LogDirOptions
from log.segments.file_names import LOG
from log.storage import FileStorage
from tests.kafka.cluster import Cluster
from tests.kafka.jvm import KafkaThrewError
from tests.log.samples import SAMPLES, START_MS, append

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES: Final = 1 << 20  # Kafka's smallest since 4.0.
TOPICS: Final[dict[str, tuple[list[list[int]], dict[str, str]]]] = {
    "orders": ([[1, 5, 3], [2, 3, 4], [6, 1, 2], [4, 2, 6], [5, 6, 1], [3, 4, 5]], {"min.insync.replicas": "2"}),
    "payments": ([[6, 4, 2], [1, 5, 6]], {"min.insync.replicas": "1", "message.timestamp.type": "LogAppendTime"}),
    "gone": ([[1, 2], [5, 6]], {}),
    "keys": ([[6]], {"cleanup.policy": "compact"}),
    "made": ([[6]], {}),
}
REASSIGNED: Final = ("orders", 0, [2, 6, 4])
CONFIG: Final = LogConfig(
    segment_size_bytes=SizeBytes(SEGMENT_BYTES), index_size_bytes=SizeBytes(65536), retention_ms=DurationMs(-1)
)
KEY_COUNT: Final = 40
KEYED_COUNT: Final = 900
_ROW: Final = re.compile(r"\tReplicas: (\S*)\tIsr: (\S*)")

Consumed: TypeAlias = list[list[Any]]
"""Rows of topic, partition, offset, timestamp, key and value."""


@attrs.frozen
class TakenMoment:
    """One moment: its name, what kafka-topics --describe printed, and the metadata log's end offset then."""

    name: str
    text: str
    end_offset: int


@attrs.define
class Evidence:
    """What the scenario leaves for the checks.

    `acknowledged`: topic, partition and offset to key and value, of records outside aborted transactions; `aborted`:
    the others; `killed`: copies of the log directories of killed nodes; `consumed`: what consumers read, by name.
    """

    release: Release
    folder: Path
    moments: list[TakenMoment] = attrs.field(factory=list)
    acknowledged: dict[tuple[str, int, int], tuple[str, str | None]] = attrs.field(factory=dict)
    aborted: dict[tuple[str, int, int], tuple[str, str | None]] = attrs.field(factory=dict)
    killed: dict[int, Path] = attrs.field(factory=dict)
    consumed: dict[str, Consumed] = attrs.field(factory=dict)

    def logs(self, node_id: int) -> Path:
        """Return a node's log directory as it was shut down in the end."""
        return self.folder / f"node-{node_id}" / "logs"


def run_scenario(folder: Path, release: Release) -> Evidence:
    """Run the scenario below `folder`."""
    evidence = Evidence(release, folder)
    with Cluster.start(folder, release, node_count=6) as cluster:
        steps = _Scenario(cluster, evidence)
        for step in (steps.fill, steps.kill_and_rework, steps.lose_a_rack, steps.delete, steps.end):
            step()
    return evidence


class _Scenario:
    """The steps, on a cluster that runs."""

    def __init__(self, cluster: Cluster, evidence: Evidence) -> None:
        self.cluster = cluster
        self.evidence = evidence
        self.call = cluster.call
        self.chance = random.Random(11)

    def fill(self) -> None:
        """Create topics and write to them with every codec and in transactions, one of which stays open."""
        for topic, (replicas, settings) in TOPICS.items():
            self.call("create", topic=topic, replicas=replicas, settings={"segment.bytes": SEGMENT_BYTES, **settings})
        self._await(lambda rows: len(rows) >= 12 and _is_whole(rows), "all topics to be whole")
        self._moment("created")
        for codec in CODECS:
            self._produce("orders", codec, 60, codec)
        self._produce("gone", "lz4", 10, "lz4")
        self._transaction("first", "gzip", "commit")
        self._transaction("second", "zstd", "abort")
        self._transaction("first", "gzip", "abort")
        self._transaction("open", "none", None)
        keyed = [
            [0, f"key-{self.chance.randrange(KEY_COUNT)}", self._value(self.chance.choice((0, 2000, 3000)))]
            for _ in range(KEYED_COUNT)
        ]
        self._send("keys", "none", keyed)

    def kill_and_rework(self) -> None:
        """Kill node 6, work on its directory, and start a broker on what came of it."""
        self.cluster.kill(6)
        self._await(lambda rows: not any(6 in isr and len(replicas) > 1 for replicas, isr in rows), "node 6 to be out")
        self._moment("node 6 killed")
        self._produce("orders", "snappy", 60, "without-6")
        self._keep(6)
        self._rework(self.cluster.nodes[6].logs)
        self.cluster.run([6])
        self._await(_is_whole, "node 6 to be back")
        self._moment("node 6 back")
        self._consume("reworked", "keys", "made")
        self._produce("keys", "zstd", 5, "after")
        self._produce("made", "zstd", 5, "after")
        self.call("commit", producer="open")

    def lose_a_rack(self) -> None:
        """Kill both nodes of rack b, reassign onto one of them, and let them recover by themselves."""
        self.cluster.kill(2, 5)
        self._await(lambda rows: not any({2, 5} & set(isr) for _, isr in rows), "rack b to be out")
        topic, partition, target = REASSIGNED
        self.call("reassign", topic=topic, partition=partition, replicas=target)
        self._await(lambda rows: any(len(replicas) > 3 and 6 in isr for replicas, isr in rows), "node 6 to be added")
        self._moment("rack b lost")
        self._produce("orders", "gzip", 60, "without-b")
        self._keep(5)
        self.cluster.run([2, 5])
        self._await(lambda rows: _is_whole(rows) and REASSIGNED[2] in [each for each, _ in rows], "rack b to be back")
        self._moment("rack b back")

    def delete(self) -> None:
        """Delete a topic."""
        self.call("delete", topic="gone")
        self._await(lambda rows: len(rows) == 12 + 2 - 2, "the topic to be deleted")
        self._moment("deleted")

    def end(self) -> None:
        """Read all there is, and shut down."""
        self._consume("end", *(topic for topic in TOPICS if topic != "gone"))
        self._consume("committed", "orders", "payments", "made", isolation="read_committed")
        self.cluster.stop(*self.cluster.nodes)

    def _produce(self, topic: str, codec: str, count: int, name: str) -> None:
        partitions = len(TOPICS[topic][0])
        rows = [
            [number % partitions, f"{name}-{number}", self._value(self.chance.choice((5, 80, 400)))]
            for number in range(count)
        ]
        self._send(topic, codec, rows)

    def _send(self, topic: str, codec: str, rows: list[list[Any]]) -> None:
        self._acknowledge(topic, rows, self.call("produce", topic=topic, producer=codec, codec=codec, records=rows))

    def _transaction(self, producer: str, codec: str, end: str | None) -> None:
        rows = [[number % 2, f"{producer}-{end}-{number}", self._value(50)] for number in range(20)]
        answer = self.call(
            "produce", topic="payments", producer=producer, codec=codec, transactional=True, records=rows
        )
        self._acknowledge("payments", rows, answer, aborted=end == "abort")
        if end is not None:
            self.call(end, producer=producer)

    def _acknowledge(self, topic: str, rows: list[list[Any]], answer: dict[str, Any], *, aborted: bool = False) -> None:
        assert len(answer["acknowledged"]) == len(rows)
        known = self.evidence.aborted if aborted else self.evidence.acknowledged
        for (_, key, value), (partition, offset) in zip(rows, answer["acknowledged"], strict=True):
            known[topic, partition, offset] = (key, value)

    def _value(self, size: int) -> str | None:
        return None if size == 0 else self.chance.randbytes((size + 1) // 2).hex()

    def _described(self) -> str | None:
        """Return what kafka-topics prints; None while one broker lists a topic that another has deleted already."""
        try:
            text: str = self.call("describe")["text"]
        except KafkaThrewError as thrown:
            if "UnknownTopicOrPartitionException" in str(thrown):
                return None
            raise
        return text

    def _await(self, condition: Callable[[list[tuple[list[int], list[int]]]], bool], what: str) -> None:
        def holds() -> bool:
            text = self._described()
            return text is not None and condition(_rows(text))

        self.cluster.wait(holds, what, 90)

    def _moment(self, name: str) -> None:
        taken: list[TakenMoment] = []

        def is_quiet() -> bool:
            before = self._described()
            end_offset = self.call("quorum")["highWatermark"]
            time.sleep(0.5)
            if before is None or self._described() != before:
                return False
            taken.append(TakenMoment(name, before, end_offset))
            return True

        self.cluster.wait(is_quiet, f"a quiet moment: {name}")
        self.evidence.moments.extend(taken)

    def _keep(self, node_id: int) -> None:
        copy = self.evidence.folder / f"killed-{node_id}"
        shutil.copytree(self.cluster.nodes[node_id].logs, copy)
        self.evidence.killed[node_id] = copy

    def _consume(self, name: str, *topics: str, isolation: str = "read_uncommitted") -> None:
        partitions = [[topic, number] for topic in topics for number in range(len(TOPICS[topic][0]))]
        self.evidence.consumed[name] = self.call("consume", isolation=isolation, partitions=partitions)["records"]

    def _rework(self, logs: Path) -> None:
        """Recover a killed broker's directory, compact `keys-0` in it, and write `made-0` anew."""
        now_ms = TimeMs(time.time_ns() // 1_000_000)
        options = LogDirOptions(config=CONFIG)
        recovered = LogDir.open(FileStorage(logs), options, now_ms=now_ms, entropy=SplitMix64(1))
        assert not recovered.had_clean_shutdown
        recovered.shut_down(now_ms=now_ms)
        arguments = ["compact", str(logs / "keys-0"), "--in-place", "--yes", "--include-active", "--quiet"]
        settings = [f"segment.bytes={SEGMENT_BYTES}", "segment.index.bytes=65536", "cleanup.policy=compact"]
        done = CliRunner().invoke(log_command, [*arguments, *(f"--config={each}" for each in settings)])
        assert done.exit_code == 0, done.output
        make_partition(logs)


def make_partition(logs: Path) -> None:
    """Replace what is in `made-0` by a log of ours: every codec, then transactions that commit and abort."""
    for path in (logs / "made-0").iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    made = PartitionLog.open(FileStorage(logs), "made-0", CONFIG, now_ms=START_MS)
    for number in range(3 * len(Codec)):
        append(made, BatchSpec(codec=list(Codec)[number % len(Codec)]), number)
    SAMPLES["transactions"](made)
    made.close(now_ms=START_MS)
    assert any(path.name.endswith(LOG) for path in (logs / "made-0").iterdir())
    assert made.log_end_offset > Offset(0)


def _rows(text: str) -> list[tuple[list[int], list[int]]]:
    return [(_numbers(replicas), _numbers(isr)) for replicas, isr in _ROW.findall(text)]


def _is_whole(rows: Iterable[tuple[list[int], list[int]]]) -> bool:
    return all(sorted(replicas) == sorted(isr) for replicas, isr in rows)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]
