"""kafka-dump-log against ours: whole outputs, on golden files, on files that we wrote, and on damaged ones."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from broker.ids import Offset, ProducerId
from broker.releases import NEWEST
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.partition.producer_entry import ProducerEntry, encode_snapshot
from log.record import Record
from log.tools.dump_options import DECODER_CLASSES, DumpOptions
from log.tools.dump_topics import TOPIC_DECODERS
from tests.kafka.dumps import dumped, has_index, unlike
from tests.kafka.jvm import KafkaJvm
from tests.log.metadata.made import REAL_NEWEST
from tests.log.samples import SAMPLES, write_sample

pytestmark = pytest.mark.kafka

RELEASES: Final = (NEWEST,)
"""What is printed differs between releases; ours is the newest one's."""
LOG_OPTIONS: Final = {
    (): DumpOptions(),
    ("--deep-iteration",): DumpOptions(deep=True),
    ("--print-data-log",): DumpOptions(deep=True, print_data=True),
    ("--print-data-log", "--skip-record-metadata"): DumpOptions(deep=True, print_data=True, skip_record_metadata=True),
    ("--max-bytes", "500"): DumpOptions(bytes_max=500),
}
INDEX_OPTIONS: Final = {
    (): DumpOptions(),
    ("--index-sanity-check",): DumpOptions(index_sanity_check=True),
    ("--verify-index-only",): DumpOptions(verify_index_only=True),
}
COUNTS: Final = (-(2**31), -1, 0, 1, 2, 2**31 - 1)
BODIES: Final = (b"", b"\0", bytes(45), bytes(46), bytes(91))
OTHER_OPTIONS: Final = {(): DumpOptions()}
OPTIONS: Final = {
    ".log": LOG_OPTIONS,
    ".index": INDEX_OPTIONS,
    ".timeindex": INDEX_OPTIONS,
    ".txnindex": OTHER_OPTIONS,
    ".snapshot": OTHER_OPTIONS,
}
GOLDEN_FILE_COUNT_MIN: Final = 4000


def differences(kafka: KafkaJvm, paths: Sequence[Path]) -> list[str]:
    return [
        f"{path} with {arguments}"
        for path in paths
        for arguments, options in OPTIONS[path.suffix].items()
        if unlike(dumped([path], options), kafka.dump([path], *arguments)) is not None
    ]


def test_every_golden_file_is_dumped_as_kafka_dumps_it(kafka: KafkaJvm, golden_logs: Path) -> None:
    paths = sorted(path for path in golden_logs.rglob("*") if path.is_file() and path.suffix in OPTIONS)
    assert len(paths) > GOLDEN_FILE_COUNT_MIN
    assert differences(kafka, paths) == []


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_kafka_dumps_what_we_wrote_as_we_do_and_finds_no_fault(kafka: KafkaJvm, tmp_path: Path, sample: str) -> None:
    write_sample(sample, tmp_path)
    paths = [path for path in sorted(tmp_path.rglob("*")) if path.suffix in OPTIONS and has_index(path)]
    assert {path.suffix for path in paths} >= {".log", ".index", ".timeindex"}
    assert differences(kafka, paths) == []
    logs = [path for path in paths if path.suffix == ".log"]
    indexes = [path for path in paths if path.suffix in (".index", ".timeindex")]
    deep = kafka.dump(logs, "--deep-iteration")
    assert deep.thrown is None
    assert "isvalid: true" in deep.out
    assert "isvalid: false" not in deep.out
    assert "invalid bytes" not in deep.out
    sane = kafka.dump(indexes, "--index-sanity-check")
    assert (sane.err, sane.thrown) == ("", None)
    passed = [line for line in sane.out.splitlines() if not line.startswith("Dumping")]
    assert all(line.endswith(("passed sanity check.", "is empty.")) for line in passed), passed
    assert len(passed) == len(indexes)


def test_snapshots_cut_or_changed_anywhere_are_refused_in_the_words_of_kafka(kafka: KafkaJvm, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007.snapshot"
    whole = encode_snapshot([ProducerEntry(ProducerId(7)), ProducerEntry(ProducerId(8))])
    broken = [whole, b""]
    for at in range(len(whole)):
        broken += [whole[:at], whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :]]
    broken += [
        struct.pack(">hIi", version, 0, count) + body for version in (0, 1, 2) for count in COUNTS for body in BODIES
    ]
    said = set()
    for content in broken:
        path.write_bytes(content)
        theirs = kafka.dump([path])
        assert dumped([path], DumpOptions()) == theirs, content.hex()
        said.add(theirs.err)
    assert len(said) >= 12, said


def test_decoder_classes_print_as_kafkas_do(kafka: KafkaJvm, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    records = [Record(Offset(0), TimeMs(0), b"\xff\xff\xff\xfe", b"\0\0\0\0\0\0\1\0more")]
    path.write_bytes(build_batch(BatchSpec(), records))
    for key, value in itertools.product(DECODER_CLASSES, repeat=2):
        options = DumpOptions(
            deep=True, print_data=True, key_decoder=DECODER_CLASSES[key], value_decoder=DECODER_CLASSES[value]
        )
        theirs = kafka.dump([path], "--key-decoder-class", key, "--value-decoder-class", value)
        assert unlike(dumped([path], options), theirs) is None, (key, value)


@pytest.mark.parametrize("decoder", TOPIC_DECODERS)
def test_records_of_internal_topics_are_decoded_as_kafka_decodes_them(kafka: KafkaJvm, decoder: str) -> None:
    path = REAL_NEWEST / "internal_topics" / decoder / "00000000000000000000.log"
    options = DumpOptions(deep=True, print_data=True, topic_decoder=decoder)
    assert unlike(dumped([path], options), kafka.dump([path], f"--{decoder}-decoder")) is None


def test_the_comparison_tells_a_changed_byte(kafka: KafkaJvm, tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = next(path for path in sorted(tmp_path.rglob("*.log")) if path.stat().st_size)
    before = kafka.dump([path], "--print-data-log")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert dumped([path], DumpOptions(deep=True, print_data=True)) != before
    assert "isvalid: false" in dumped([path], DumpOptions()).out
