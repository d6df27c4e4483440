"""Random batches of every magic and codec, built by both and read by both, whole and damaged.

What it decides: whether uncompressed batches have the same bytes; whether both read what either built to the same
batches; and whether both read damaged bytes to the same batches and then refuse the same, by the class of exception.

How: timestamps, sequences and offsets lean to their edges. Damage is a flipped bit, a cut end or a changed field.

Left out: types of control records, which dumps show; building what Kafka refuses to build.

Source: org.apache.kafka.common.record MemoryRecords, MemoryRecordsBuilder and DefaultRecordBatch.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import INT32_MAX, INT64_MAX
from log.batches.in_buffer import BatchReader, batches_in
from tests.golden.log.batches import batch_json
from tests.golden.log.states import batch_bytes
from tests.kafka.areas import Area, fewer
from tests.kafka.jvm import KafkaJvm

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
WORDS: Final = (None, "", "a", "key", "é\U0001f600", "value " * 30)


@attrs.frozen
class BatchCase:
    """Batches as golden files give them, and what is changed in their bytes: kind, share of the way, number."""

    batches: tuple[dict[str, Any], ...]
    damage: tuple[tuple[str, float, int], ...] = ()


def area(kafka: KafkaJvm) -> Area[BatchCase]:
    """Return the area of batches."""
    return Area(name="batches", draw=draw, difference=lambda case: difference(kafka, case), smaller=smaller)


def draw(seed: int, number: int) -> BatchCase:
    """Return case `number` of a seed."""
    chance = random.Random(f"batches/{seed}/{number}")
    offset = chance.choice((0, 0, 5, 2**31, 2**40))
    batches = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        batch = _batch(chance, offset)
        offset = batch["records"][-1]["offset"] + chance.choice((1, 1, 4))
        batches.append(batch)
    kinds = [chance.choice(("flip", "flip", "cut", "set")) for _ in range(chance.choice((0, 1, 1, 2)))]
    return BatchCase(tuple(batches), tuple((kind, chance.random(), chance.randrange(256)) for kind in kinds))


def difference(kafka: KafkaJvm, case: BatchCase) -> str | None:
    """Return the first difference in bytes or in what is read."""
    ours = [batch_bytes(each) for each in case.batches]
    theirs = [base64.b64decode(each) for each in kafka.call("build", batches=case.batches)]
    for given, our, their in zip(case.batches, ours, theirs, strict=True):
        if given["compression"] == "none" and our != their:
            return f"built: ours {our.hex()}, Kafka {their.hex()}"
    data = [b"".join(ours), b"".join(theirs)]
    data += [damaged(each, case) for each in data] if case.damage else []
    asked = [base64.b64encode(each).decode("ascii") for each in data]
    for bytes_read, their_outcome in zip(data, kafka.call("read", data=asked), strict=True):
        our_outcome = outcome(bytes_read)
        for batch in their_outcome["batches"]:
            _forget(batch)
        if our_outcome != their_outcome:
            return f"read {bytes_read.hex()}:\n  ours  {our_outcome}\n  Kafka {their_outcome}"
    return None


def damaged(data: bytes, case: BatchCase) -> bytes:
    """Return the bytes with the case's damage."""
    changed = bytearray(data)
    for kind, share, number in case.damage:
        place = int(share * len(changed))
        if kind == "cut":
            del changed[place:]
        elif place < len(changed):
            changed[place] = number if kind == "set" else changed[place] ^ 1 << number % 8
    return bytes(changed)


def outcome(data: bytes) -> dict[str, Any]:
    """Return what we read, as java/LogBatches.java tells it."""
    batches: list[dict[str, Any]] = []
    answer: dict[str, Any] = {"batches": batches}
    try:
        for batch in batches_in(data, reader=BatchReader.MEMORY):
            batch.ensure_valid()
            batches.append(_forget(batch_json(batch)))
    except CorruptDataError as error:
        answer["exception"] = str(getattr(error, "kafka_class", "")).rpartition(".")[2].rpartition("$")[2]
    return answer


def smaller(case: BatchCase) -> Iterator[BatchCase]:
    """Yield cases with less damage, fewer batches or records, or a simpler batch."""
    for damage in fewer(case.damage):
        yield attrs.evolve(case, damage=tuple(damage))
    for batches in fewer(case.batches):
        if batches:
            yield attrs.evolve(case, batches=tuple(batches))
    for place, batch in enumerate(case.batches):
        for less in _smaller_batch(batch):
            yield attrs.evolve(case, batches=(*case.batches[:place], less, *case.batches[place + 1 :]))


def _smaller_batch(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for records in fewer(batch["records"]):
        if records:
            yield {**batch, "records": records}
    for name in ("producerId", "transactional"):
        if name in batch:
            left_out = {name} if name == "transactional" else {name, "producerEpoch", "baseSequence", "transactional"}
            if "control" not in batch:
                yield {key: value for key, value in batch.items() if key not in left_out}
    if batch["compression"] != "none":
        yield {**batch, "compression": "none"}
    for place, record in enumerate(batch["records"]):
        for name in ("key", "value", "headers"):
            if record.get(name) is not None:
                less = {key: value for key, value in record.items() if key != name}
                less |= {} if name == "headers" else {name: None}
                yield {**batch, "records": [*batch["records"][:place], less, *batch["records"][place + 1 :]]}


def _batch(chance: random.Random, offset: int) -> dict[str, Any]:
    magic = chance.choice((2, 2, 2, 1, 0))
    codecs = CODECS if magic == 2 else CODECS[:4] if magic == 1 else CODECS[:3]
    log_append = magic > 0 and chance.random() < 0.2
    batch: dict[str, Any] = {
        "magic": magic,
        "compression": chance.choice(codecs),
        "timestampType": "LogAppendTime" if log_append else "CreateTime",
        "baseOffset": offset,
    }
    if log_append:
        batch["logAppendTime"] = chance.choice((0, 1_700_000_000_000, INT64_MAX))
    if magic == 2:
        batch["partitionLeaderEpoch"] = chance.choice((-1, 0, 7, INT32_MAX))
        if chance.random() < 0.5:
            batch["producerId"] = chance.choice((0, 900, INT64_MAX))
            batch["producerEpoch"] = chance.choice((0, 1, 32767))
            batch["baseSequence"] = chance.choice((0, 5, INT32_MAX, INT32_MAX - 1))
            batch["transactional"] = chance.random() < 0.5
            if chance.random() < 0.2:
                return _marker(chance, batch)
    records = []
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        records.append(_record(chance, offset, magic))
        offset += chance.choice((1, 1, 1, 3))
    return {**batch, "records": records}


def _marker(chance: random.Random, batch: dict[str, Any]) -> dict[str, Any]:
    batch |= {"compression": "none", "timestampType": "CreateTime", "transactional": True}
    batch.pop("logAppendTime", None)
    batch.pop("baseSequence", None)
    batch |= {"control": chance.choice(("COMMIT", "ABORT")), "coordinatorEpoch": chance.choice((0, 3, INT32_MAX))}
    timestamp = chance.choice((0, 1_700_000_000_000))
    return {**batch, "records": [{"offset": batch["baseOffset"], "timestamp": timestamp, "key": None, "value": None}]}


def _record(chance: random.Random, offset: int, magic: int) -> dict[str, Any]:
    near = 1_700_000_000_000 + chance.choice((0, 1, -70, 70_000))
    record: dict[str, Any] = {
        "offset": offset,
        "timestamp": -1 if magic == 0 else chance.choice((near, near, near, 0, -1, INT64_MAX, 2**62)),
        "key": _encoded(chance.choice(WORDS)),
        "value": _encoded(chance.choice(WORDS)),
    }
    if magic == 2 and chance.random() < 0.3:
        names = [chance.choice(("h", "", "é")) for _ in range(chance.choice((1, 2)))]
        record["headers"] = [[name, _encoded(chance.choice(WORDS))] for name in names]
    return record


def _forget(batch: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is not compared: of old messages the base offset, which need not be that of the first record."""
    if batch["magic"] < 2:
        del batch["baseOffset"]
    for record in batch["records"]:
        for name in ("controlType", "coordinatorEpoch"):
            record.pop(name, None)
    return batch


def _encoded(text: str | None) -> str | None:
    return None if text is None else base64.b64encode(text.encode()).decode()
