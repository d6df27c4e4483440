"""The metadata log against Kafka: what kafka-dump-log prints of it, and what Kafka's images make of its records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.ids import Offset
from broker.releases import NEWEST
from broker.units import TimeMs
from log import BatchSpec, Record, build_batch
from log.metadata import MetadataRecord, RecordType, decode_record
from log.metadata.records import CONTROL_SCHEMAS, ControlRecord
from log.metadata.state import MetadataState
from log.record import ControlType
from log.tools.dump_options import DumpOptions
from tests.kafka.dumps import dumped
from tests.kafka.jvm import Dumped, KafkaJvm
from tests.kafka.metadata import metadata_image
from tests.log.metadata.drawn import METADATA_LEVELS, image_of, structures

pytestmark = pytest.mark.kafka

REAL: Final = Path(__file__).parents[1] / "real_data" / "kraft" / "__cluster_metadata-0"
NAME: Final = "00000000000000000000.log"
ONE_FOLDER: Final = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTROLS: Final = st.sampled_from(sorted(set(CONTROL_SCHEMAS) - {ControlType.LEADER_CHANGE})).flatmap(
    lambda kind: structures(CONTROL_SCHEMAS[kind].fields, 0).map(
        lambda data: ControlRecord(kind, {**data, "version": 0})
    )
)


def ours(path: Path) -> Dumped:
    return dumped([path], DumpOptions(deep=True, print_data=True, metadata=True))


def theirs(kafka: KafkaJvm, path: Path) -> Dumped:
    return kafka.dump([path], "--cluster-metadata-decoder")


@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str, scope="session")
@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir()))
def test_a_real_log_and_its_snapshots_are_dumped_as_kafka_dumps_them(kafka: KafkaJvm, name: str) -> None:
    found = theirs(kafka, REAL / name)
    assert '"type":"FEATURE_LEVEL_RECORD"' in found.out or "SnapshotHeader" in found.out
    assert ours(REAL / name) == found


@ONE_FOLDER
@given(controls=st.lists(CONTROLS, min_size=1, max_size=5))
def test_any_control_record_is_dumped_as_kafka_dumps_it(
    kafka: KafkaJvm, tmp_path: Path, controls: list[ControlRecord]
) -> None:
    path = tmp_path / NAME
    values = [Record(Offset(place), TimeMs(0), each.key(), each.value()) for place, each in enumerate(controls)]
    path.write_bytes(build_batch(BatchSpec(is_control=True), values))
    assert ours(path) == theirs(kafka, path)


def test_what_cannot_be_read_is_reported_in_kafkas_words(kafka: KafkaJvm, tmp_path: Path) -> None:
    values = (b"\0\0\0\0", b"\2\0\0", b"\1\x63\0\0", b"\1\x14\0\0\0", b"\1\x04\0\2", b"\1\xff\xff\xff\x07\0", b"")
    path = tmp_path / NAME
    path.write_bytes(
        build_batch(BatchSpec(), [Record(Offset(i), TimeMs(0), None, each) for i, each in enumerate(values)])
    )
    found = theirs(kafka, path)
    assert found.out.count("Error at") == len(values)
    assert ours(path) == found


def test_the_comparison_of_images_tells_a_change(kafka: KafkaJvm) -> None:
    level = METADATA_LEVELS[kafka.release]
    record = MetadataRecord(RecordType.FEATURE_LEVEL_RECORD, 0, {"name": "metadata.version", "featureLevel": level})
    (value,) = metadata_image(kafka, [record])
    theirs = MetadataState()
    theirs.apply(decode_record(value))
    assert list(image_of(MetadataState()).differences(image_of(theirs))) == ["features: metadata.version"]
