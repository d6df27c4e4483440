"""Random metadata records: sequences replayed to an image, and any records printed by kafka-dump-log.

How: Hypothesis draws, a hundred cases at once from a seed of their own, as tests.log.metadata.drawn says. A sequence is
made smaller by leaving out records; one that then contradicts itself is passed over.
"""

from __future__ import annotations

import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker.errors import CorruptDataError
from broker.ids import Offset
from broker.units import TimeMs
from log import BatchSpec, Record, build_batch
from log.metadata import MetadataRecord, decode_record
from log.metadata.state import MetadataState
from log.tools.dump_options import DumpOptions
from tests.kafka.areas import Area, fewer
from tests.kafka.dumps import dumped
from tests.kafka.jvm import KafkaJvm, KafkaThrewError
from tests.log.metadata.drawn import image_of, records_of, sequences_of

Drawn = TypeVar("Drawn")
Records = tuple[MetadataRecord, ...]

CHUNK: Final = 100
VERSION_DIFFERS: Final = "features: metadata.version"


def images(kafka: KafkaJvm) -> Area[Records]:
    """Return the area of images."""
    return Area(
        name="metadata images",
        draw=_drawer(sequences_of(kafka.release)),
        difference=lambda records: image_difference(kafka, records),
        smaller=_fitting,
    )


def dumps(kafka: KafkaJvm) -> Area[Records]:
    """Return the area of dumps."""
    return Area(
        name="metadata dumps",
        draw=_drawer(st.lists(records_of(kafka.release), min_size=1, max_size=30).map(tuple)),
        difference=lambda records: dump_difference(kafka, records),
        smaller=_fewer,
    )


def metadata_image(kafka: KafkaJvm, records: Sequence[MetadataRecord]) -> list[bytes]:
    """Let Kafka replay metadata records; return those that it writes of the image that comes out."""
    asked = [b64encode(record.to_bytes()).decode("ascii") for record in records]
    return [b64decode(text) for text in kafka.call("metadata", records=asked)]


def image_difference(kafka: KafkaJvm, records: Records) -> str | None:
    """Return what differs between our image and the one that Kafka writes."""
    ours, theirs = MetadataState(), MetadataState()
    for record in records:
        ours.apply(record)
    try:
        values = metadata_image(kafka, records)
    except KafkaThrewError as refusal:
        return f"Kafka refused: {refusal}"
    for value in values:
        theirs.apply(decode_record(value))
    # The writer writes the version of the metadata that it is asked for, which is the release's newest.
    differences = [each for each in image_of(ours).differences(image_of(theirs)) if each != VERSION_DIFFERS]
    return "; ".join(differences) if differences else None


def dump_difference(kafka: KafkaJvm, records: Records) -> str | None:
    """Return the first lines that differ between our dump and kafka-dump-log's."""
    options = DumpOptions(deep=True, print_data=True, metadata=True)
    values = [Record(Offset(place), TimeMs(0), None, record.to_bytes()) for place, record in enumerate(records)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "00000000000000000000.log"
        path.write_bytes(build_batch(BatchSpec(), values))
        theirs = kafka.dump([path], "--cluster-metadata-decoder")
        ours = dumped([path], options)
    if ours == theirs:
        return None
    pairs = zip(f"{ours.out}{ours.err}".splitlines(), f"{theirs.out}{theirs.err}".splitlines(), strict=False)
    return next((f"ours {our}, Kafka {their}" for our, their in pairs if our != their), f"{ours}, Kafka {theirs}")


def _drawer(strategy: st.SearchStrategy[Drawn]) -> Callable[[int, int], Drawn]:
    @lru_cache(maxsize=2)
    def chunk(seed: int, number: int) -> tuple[Drawn, ...]:
        found: list[Drawn] = []

        @hypothesis.seed(seed * 1_000_003 + number)
        @settings(
            max_examples=CHUNK,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def keep(drawn: Any) -> None:
            found.append(drawn)

        keep()
        return tuple(found)

    # Hypothesis may draw fewer than it was asked for; the case then comes again.
    return lambda seed, number: (cases := chunk(seed, number // CHUNK))[number % CHUNK % len(cases)]


def _fewer(records: Records) -> Iterator[Records]:
    for less in fewer(records):
        if less:
            yield tuple(less)


def _fitting(records: Records) -> Iterator[Records]:
    first, *rest = records
    for less in fewer(rest):
        state = MetadataState()
        try:
            for record in (first, *less):
                state.apply(record)
        except CorruptDataError:
            continue
        yield (first, *less)
