"""What must hold of a real cluster's files and of what its consumers read: ours and Kafka's say the same.

What it decides: for each kind of evidence, the list of differences, empty where all is well.

How
- Moments: our view of the metadata log at a moment's offset against what kafka-topics printed then, on every node.
- Dumps: every segment, index and snapshot of the directories as they were shut down and as they were when their broker
  was killed, by kafka-dump-log and by ours.
- Recovery: each partition of a killed broker's directory opened by UnifiedLog and by us: states, names and bytes.
- Consumers: what they read against what producers were told, and against what we read of a directory that we made.

Source: ours.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from broker.ids import Offset
from broker.units import TimeMs
from log import Isolation, PartitionLog, batches_in
from log.log_dir import partition_directories
from log.metadata import Moment, Replay, images_at, view_of
from log.partition.recovery import LastShutdown
from log.storage import FileStorage
from log.storage.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, read_offset_checkpoint
from log.tools.dump_options import DumpOptions
from log.tools.sources import metadata_files
from placement.formats.read import read_dump
from tests.golden.log.states import state_json
from tests.kafka.cluster_scenario import CONFIG, SEGMENT_BYTES, Consumed, Evidence, make_partition
from tests.kafka.dumps import dumped, has_index, unlike
from tests.kafka.jvm import KafkaJvm
from tests.log.metadata.test_view import rows, topics

METADATA: Final = "__cluster_metadata-0"
SETTINGS: Final = {"segment.bytes": SEGMENT_BYTES, "segment.index.bytes": 65536, "retention.ms": -1}
DUMPED: Final = {
    ".log": (("--deep-iteration", "--print-data-log"), DumpOptions(deep=True, print_data=True)),
    ".index": ((), DumpOptions()),
    ".timeindex": ((), DumpOptions()),
    ".txnindex": ((), DumpOptions()),
    ".snapshot": ((), DumpOptions()),
    METADATA: (("--cluster-metadata-decoder",), DumpOptions(deep=True, print_data=True, metadata=True)),
}
"""A kind of file, its suffix or METADATA, and how it is printed by both."""

OPENED_MS: Final = TimeMs(1_800_000_000_000)


def moment_differences(evidence: Evidence) -> Iterator[str]:
    """Yield the moments at which a node's metadata log and kafka-topics say different things."""
    for node_id in range(1, 7):
        replay = Replay(metadata_files(evidence.logs(node_id) / METADATA))
        at = [Moment(offset=Offset(moment.end_offset - 1)) for moment in evidence.moments]
        for moment, image in zip(evidence.moments, images_at(replay, at), strict=True):
            ours = view_of(image, name="c", source="log")
            (theirs,) = read_dump([moment.text.encode()], source="describe").clusters
            if rows(ours) != rows(theirs) or topics(ours) != topics(theirs):
                yield f"{moment.name} on node {node_id}: ours {rows(ours)}\nkafka-topics {rows(theirs)}"


def dump_differences(evidence: Evidence, kafka: KafkaJvm, kind: str) -> Iterator[str]:
    """Yield the files of a kind, a suffix or METADATA, that kafka-dump-log and ours print otherwise."""
    arguments, options = DUMPED[kind]
    for path in dumped_files(evidence, kind):
        found = unlike(dumped([path], options), kafka.dump([path], *arguments))
        if found is not None:
            yield f"{path} with {arguments}: {found}"


def dumped_files(evidence: Evidence, kind: str) -> list[Path]:
    """Return the files of a kind in all directories, those of killed nodes included."""
    folders = [*(evidence.logs(node_id) for node_id in range(1, 7)), *evidence.killed.values()]
    found = (path for folder in folders for path in sorted(folder.rglob("*")))
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if kind == METADATA:
        return [path for path in files if path.parent.name == METADATA and path.suffix in (".log", ".checkpoint")]
    return [path for path in files if path.suffix == kind and path.parent.name != METADATA and has_index(path)]


def recovery_differences(evidence: Evidence, kafka: KafkaJvm, folder: Path) -> Iterator[str]:
    """Yield the partitions of killed brokers that Kafka and we recover otherwise."""
    for node_id, killed in evidence.killed.items():
        theirs, ours = folder / f"theirs-{node_id}", folder / f"ours-{node_id}"
        shutil.copytree(killed, theirs)
        shutil.copytree(killed, ours)
        points = read_offset_checkpoint(FileStorage(killed), RECOVERY_POINT_FILE)
        starts = read_offset_checkpoint(FileStorage(killed), LOG_START_FILE)
        for held in partition_directories(FileStorage(killed)):
            point, start = points.get(held.partition, Offset(0)), starts.get(held.partition, Offset(0))
            state = kafka.opened(theirs / held.name, SETTINGS, recoveryPoint=point, logStart=start, nowMs=OPENED_MS)
            last = LastShutdown(clean=False, recovery_point=point, log_start_offset=start)
            log = PartitionLog.open(FileStorage(ours), held.name, CONFIG, last, now_ms=OPENED_MS)
            if state_json(log.state()) != state:
                yield f"{held.name} of node {node_id}: ours {state_json(log.state())}\nKafka {state}"
            log.close(now_ms=OPENED_MS)
            if _contents(ours / held.name) != _contents(theirs / held.name):
                yield f"{held.name} of node {node_id}: files differ"


def consumer_differences(evidence: Evidence, folder: Path) -> Iterator[str]:
    """Yield what consumers did not read, or read though it should be gone."""
    answered = {**evidence.acknowledged, **evidence.aborted}
    for topic in ("orders", "payments"):
        yield from _unlike(f"{topic} in the end", _of(answered, topic), _read(evidence.consumed["end"], topic))
        committed = _read(evidence.consumed["committed"], topic)
        yield from _unlike(f"{topic} committed", _of(evidence.acknowledged, topic), committed)
    sent = {place: record for place, record in _of(answered, "keys").items() if not record[0].startswith("after")}
    kept = {record[0]: place for place, record in sorted(sent.items())}
    survivors = {place: sent[place] for place in kept.values()}
    yield from _unlike("keys compacted", survivors, _read(evidence.consumed["reworked"], "keys"))
    after = {place: record for place, record in answered.items() if record[0].startswith("after")}
    everything = {**survivors, **_of(after, "keys")}
    yield from _unlike("keys in the end", everything, _read(evidence.consumed["end"], "keys"))
    made, committed_of_made = made_records(folder)
    yield from _unlike("made", made, _read(evidence.consumed["reworked"], "made"))
    yield from _unlike("made in the end", {**made, **_of(after, "made")}, _read(evidence.consumed["end"], "made"))
    committed = {**committed_of_made, **_of(after, "made")}
    yield from _unlike("made, committed", committed, _read(evidence.consumed["committed"], "made"))


Records = dict[tuple[str, int, int], tuple[str, "str | None"]]


def made_records(folder: Path) -> tuple[Records, Records]:
    """Return the records of the directory that we made, all and those outside aborted transactions."""
    logs = folder / "made"
    (logs / "made-0").mkdir(parents=True)
    make_partition(logs)
    log = PartitionLog.open(FileStorage(logs), "made-0", CONFIG, now_ms=OPENED_MS)
    log.update_high_watermark(log.log_end_offset)
    fetched = log.read(Offset(0), max_bytes=1 << 30, isolation=Isolation.COMMITTED)
    ends: dict[int, list[tuple[int, int]]] = {}
    for each in fetched.aborted_transactions or ():
        ends.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
    every: Records = {}
    committed: Records = {}
    for batch in batches_in(fetched.records):
        if batch.is_control:
            continue
        for record in batch.records():
            assert record.key is not None
            place = ("made", 0, int(record.offset))
            value = None if record.value is None else record.value.decode()
            every[place] = (record.key.decode(), value)
            spans = ends.get(batch.producer_id, []) if batch.is_transactional else []
            if not any(first <= record.offset <= last for first, last in spans):
                committed[place] = every[place]
    log.close(now_ms=OPENED_MS)
    return every, committed


def _of(records: Mapping[tuple[str, int, int], tuple[str, str | None]], topic: str) -> Records:
    return {place: record for place, record in records.items() if place[0] == topic}


def _read(consumed: Consumed, topic: str) -> Records:
    return {(row[0], row[1], row[2]): (row[4], row[5]) for row in consumed if row[0] == topic}


def _unlike(what: str, expected: Records, found: Records) -> Iterator[str]:
    if expected != found:
        missing, extra = sorted(expected.keys() - found.keys())[:3], sorted(found.keys() - expected.keys())[:3]
        yield f"{what}: expected {len(expected)} records, read {len(found)}; missing {missing}, too much {extra}"


def _contents(folder: Path) -> dict[str, Any]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
