"""Random programs of operations for Kafka's UnifiedLog and cleaner, as golden cases without results.

Case k of a seed is a function of (seed, k) alone. Kafka runs a program and writes down results, states and files; the
runner of golden cases runs it on ours. Settings are drawn so that segments roll, indexes fill, records expire and files
wait to be deleted within a few dozen operations; producers repeat, skip and fence each other; offsets are drawn as
fractions of the log as it is then. One program in eight is of magic 0 and 1 too, where nobody writes transactions.

Example: random_program(1, 17)["ops"][0]["op"]
"""

from __future__ import annotations

import base64
import copy
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.golden.log.programs import run
from tests.kafka.areas import Area, fewer
from tests.kafka.jvm import KafkaJvm, KafkaThrewError

START_MS: Final = 1_700_000_000_003
WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
UNKNOWN_VERSION: Final = -1
RAISES_EPOCH: Final = 2
INT16_MAX: Final = 32767
NO_LIMIT: Final = -1
TRANSACTIONAL_FROM: Final = 910
"""Producers from this id on write in transactions."""


Program = dict[str, Any]


def area(kafka: KafkaJvm) -> Area[Program]:
    """Return the area of log programs."""
    return Area(
        name="logs",
        draw=random_program,
        difference=lambda program: difference(kafka, program),
        smaller=smaller,
        answer_count=lambda program: len(program["ops"]),
    )


def difference(kafka: KafkaJvm, program: Program) -> str | None:
    """Return the first difference between Kafka's run of a program and ours."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(kafka.program(copy.deepcopy(program), Path(folder)), Path(folder))
        except KafkaThrewError as refusal:
            return f"Kafka did not end the program: {refusal}"


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs with fewer operations, or a follower's append with fewer batches."""
    for operations in fewer(program["ops"]):
        if operations:
            yield {**program, "ops": operations}
    for place, operation in enumerate(program["ops"]):
        for less in _smaller_operation(operation):
            yield {**program, "ops": [*program["ops"][:place], less, *program["ops"][place + 1 :]]}


def _smaller_operation(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for batches in fewer(operation.get("batches", [])):
        if batches:
            yield {**operation, "batches": batches}
    batch = operation.get("batch")
    if batch is not None and len(batch["records"]) > 1:
        yield {**operation, "batch": {**batch, "records": batch["records"][:1]}}


def random_program(seed: int, number: int) -> dict[str, Any]:
    """Return case `number` of `seed`: what Kafka is asked to run."""
    chance = random.Random(f"log/{seed}/{number}")
    marker_chance = random.Random(f"log/markers/{seed}/{number}")
    draw = _Draw(chance, marker_chance, is_compacted=number % 4 == 3, has_old_messages=number % 16 in (2, 7))
    return {
        "case": f"random-{seed}-{number}",
        "kind": "log",
        "config": draw.config,
        "startTimeMs": START_MS,
        "topicId": chance.choice((None, "AAAAAAAAHvoAAAAAAAGZJg")),
        "ops": [draw.operation() for _ in range(chance.randrange(5, 70))],
    }


class _Draw:
    """Operations for one log: what its producers have done so far, and the leader's epoch."""

    def __init__(
        self, chance: random.Random, marker_chance: random.Random, *, is_compacted: bool, has_old_messages: bool
    ) -> None:
        self.chance, self.marker_chance = chance, marker_chance
        self.has_old_messages = has_old_messages
        self.is_compacted = is_compacted
        self.now_ms = START_MS
        self.leader_epoch = 0
        self.sequences: dict[int, tuple[int, int]] = {}
        self.in_transaction: set[int] = set()
        self.config = self._config()

    def _config(self) -> dict[str, Any]:
        chance = self.chance
        config: dict[str, Any] = {
            "segment.bytes": chance.choice((300, 595, 700, 1172, 2048, 100_000)),
            "index.interval.bytes": chance.choice((0, 0, 100, 256, 4096)),
            "segment.index.bytes": chance.choice((24, 48, 4096, 4096)),
            "segment.jitter.ms": 0,
            "retention.ms": chance.choice((NO_LIMIT, NO_LIMIT, 500, 7565)),
            "retention.bytes": chance.choice((NO_LIMIT, NO_LIMIT, 900, 3185)),
            "file.delete.delay.ms": chance.choice((1, 10, 60_000)),
        }
        if chance.random() < 0.3:
            config["segment.ms"] = chance.choice((50, 1322))
        if chance.random() < 0.2:
            config["message.timestamp.type"] = "LogAppendTime"
        if self.is_compacted:
            config["cleanup.policy"] = chance.choice(("compact", "compact,delete"))
            config["min.cleanable.dirty.ratio"] = chance.choice((0.0, 0.0, 0.5))
            config["delete.retention.ms"] = chance.choice((0, 300, 10_000))
            config["min.compaction.lag.ms"] = chance.choice((0, 0, 200))
        return config

    def operation(self) -> dict[str, Any]:
        kinds = {
            self._append_as_leader: 30,
            self._append_as_follower: 8,
            self._sleep: 10,
            self._simple: 6,
            self._truncate: 3,
            self._move_start: 3,
            self._reopen: 4,
            self._look_up: 3,
        }
        if self.is_compacted:
            kinds[self._clean] = 5
        kind = self.chance.choices(list(kinds), list(kinds.values()))[0]
        return kind()

    def _append_as_leader(self) -> dict[str, Any]:
        if self.chance.random() < 0.05:
            self.leader_epoch += self.chance.choice((1, 3))
        batch, origin = self._batch()
        operation = {
            "op": "appendAsLeader",
            "batch": batch,
            "leaderEpoch": self.leader_epoch,
            "origin": origin,
            "advanceHighWatermark": self.chance.random() < 0.9,
        }
        return self._marker_by_version(operation) if "control" in batch else operation

    def _marker_by_version(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Return a marker's append with a transaction version, for which its epoch may be right; or a client's."""
        chance, batch = self.marker_chance, operation["batch"]
        version = chance.choice((0, 0, 1, 2, 2, 2, UNKNOWN_VERSION))
        if version == RAISES_EPOCH and chance.random() < 0.7:
            batch["producerEpoch"] = chance.choice((min(batch["producerEpoch"] + 1, INT16_MAX), INT16_MAX))
            self.sequences[batch["producerId"]] = (batch["producerEpoch"], 0)
        origin = "CLIENT" if chance.random() < 0.05 else operation["origin"]
        return {**operation, "origin": origin, "transactionVersion": version}

    def _append_as_follower(self) -> dict[str, Any]:
        offset = self.chance.choice((0, 0, 0, 1, 5, -2))
        batches = []
        for _ in range(self.chance.choice((1, 1, 2, 3, 5))):
            batch, _ = self._batch()
            if self.has_old_messages and self.chance.random() < 0.5:
                batch = self._old_messages(batch)
            batch.update(baseOffset=offset, partitionLeaderEpoch=self.leader_epoch)
            offset += len(batch["records"]) + self.chance.choice((0, 0, 0, 2))
            batches.append(batch)
        is_committed = self.chance.random() < 0.9
        return {"op": "appendAsFollower", "batches": batches, "fromEnd": True, "advanceHighWatermark": is_committed}

    def _old_messages(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the records of a batch as messages of magic 0 or 1, which have no headers."""
        magic = self.chance.choice((0, 1))
        times = "NoTimestampType" if magic == 0 else "CreateTime"
        bare = [{name: each[name] for name in ("timestamp", "key", "value")} for each in batch["records"]]
        records = [{**each, "timestamp": -1} for each in bare] if magic == 0 else bare
        compression = self.chance.choice(("none", "none", "gzip"))
        return {"magic": magic, "compression": compression, "timestampType": times, "records": records}

    def _batch(self) -> tuple[dict[str, Any], str]:
        """Return a batch and who sends it: a client, or the coordinator that ends a transaction."""
        chance = self.chance
        batch: dict[str, Any] = {"magic": 2, "compression": "none", "timestampType": "CreateTime", "baseOffset": 0}
        if self.in_transaction and chance.random() < 0.3:
            producer_id = chance.choice(sorted(self.in_transaction))
            self.in_transaction.discard(producer_id)
            ends = {"control": chance.choice(("COMMIT", "ABORT")), "coordinatorEpoch": 1}
            ids = {"producerId": producer_id, "producerEpoch": self.sequences[producer_id][0]}
            marker = [{"timestamp": self.now_ms, "key": None, "value": None}]
            return {**batch, **ids, **ends, "transactional": True, "records": marker}, "COORDINATOR"
        records = [self._record() for _ in range(chance.randrange(1, 5))]
        if not self.has_old_messages and chance.random() < 0.5:
            batch.update(self._producer(len(records)))
        return {**batch, "records": records}, "CLIENT"

    def _producer(self, record_count: int) -> dict[str, Any]:
        """Return the ids of the next batch of a producer, or of one that it should not send."""
        chance = self.chance
        producer_id = chance.choice((900, 901, 910, 911))
        epoch, sequence = self.sequences.get(producer_id, (0, 0))
        if chance.random() < 0.08:
            epoch, sequence = min(epoch + chance.choice((1, -1)), INT16_MAX), chance.choice((0, 0, 3))
        elif chance.random() < 0.1:
            sequence = max(0, sequence + chance.choice((-record_count, 1, 7)))
        else:
            self.sequences[producer_id] = (epoch, sequence + record_count)
        if epoch > self.sequences.get(producer_id, (0, 0))[0] and sequence == 0:
            self.sequences[producer_id] = (epoch, record_count)
        ids = {"producerId": producer_id, "producerEpoch": max(0, epoch), "baseSequence": sequence}
        if producer_id >= TRANSACTIONAL_FROM:
            self.in_transaction.add(producer_id)
            self.sequences.setdefault(producer_id, (max(0, epoch), sequence))
            return {**ids, "transactional": True}
        return ids

    def _record(self) -> dict[str, Any]:
        chance = self.chance
        key = f"k-{chance.randrange(12)}" if self.is_compacted or chance.random() < 0.7 else None
        value = None if chance.random() < 0.15 else " ".join(chance.choices(WORDS, k=chance.randrange(8)))
        record: dict[str, Any] = {
            "timestamp": self.now_ms + chance.choice((0, 0, 1, 5, -40, 400)),
            "key": _encoded(key),
            "value": _encoded(value),
        }
        if chance.random() < 0.1:
            record["headers"] = [["h", _encoded(chance.choice((None, "", "x")))]]
        return record

    def _sleep(self) -> dict[str, Any]:
        ms = self.chance.choice((0, 1, 20, 100, 1000, 9000))
        self.now_ms += ms
        return {"op": "sleep", "ms": ms}

    def _simple(self) -> dict[str, Any]:
        return {"op": self.chance.choice(("roll", "flush", "deleteOldSegments", "takeProducerSnapshot"))}

    def _truncate(self) -> dict[str, Any]:
        return {"op": "truncateTo", "atFraction": self.chance.choice((0.0, 1.0, 1.2, self.chance.random()))}

    def _move_start(self) -> dict[str, Any]:
        kind = self.chance.choice(("incrementLogStartOffset", "updateHighWatermark"))
        return {"op": kind, "atFraction": self.chance.choice((0.0, 1.0, 1.5, self.chance.random()))}

    def _reopen(self) -> dict[str, Any]:
        clean = self.chance.random() < 0.6
        recovery_point = NO_LIMIT if clean else self.chance.choice((NO_LIMIT, 0, 7))
        return {"op": "closeAndReopen", "clean": clean, "recoveryPoint": recovery_point, "logStart": NO_LIMIT}

    def _look_up(self) -> dict[str, Any]:
        if self.chance.random() < 0.5:
            return {"op": "endOffsetForEpoch", "epochs": list(range(self.leader_epoch + 3))}
        around = [self.now_ms + self.chance.randrange(-500, 500) for _ in range(5)]
        return {"op": "fetchOffsetByTimestamp", "timestamps": [-1, -2, -3, -4, START_MS - 100, *around]}

    def _clean(self) -> dict[str, Any]:
        slots = self.chance.choice((10_000, 10_000, 4))
        self.now_ms += self.config["file.delete.delay.ms"] + 1
        return {"op": "clean", "offsetMapSlots": slots, "dupBufferLoadFactor": 0.9}


def _encoded(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(text.encode()).decode()
