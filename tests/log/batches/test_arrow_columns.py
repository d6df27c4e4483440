"""Records as Arrow columns: what the objects say, row by row, for all formats and any damage between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from broker.errors import UsageError
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.arrow_columns import RECORD_COLUMNS
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.batches.scan import scan
from log.record import Record
from log.strategies import Written, streams


def rows_of(data: bytes, columns: tuple[str, ...] = RECORD_COLUMNS) -> list[dict[str, Any]]:
    return [row for chunk in scan(data) for row in chunk.to_arrow(columns).to_pylist()]


def expected(data: bytes) -> list[dict[str, Any]]:
    """Return the rows from the batches and their record objects."""
    return [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": each.name, "value": each.value} for each in record.headers],
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "sequence": record.sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "codec": batch.codec.name.lower(),
            "leader_epoch": batch.partition_leader_epoch,
        }
        for batch in batches_in(data)
        for record in batch.records()
    ]


@given(streams())
def test_columns_say_what_the_objects_say(stream: tuple[Written, ...]) -> None:
    data = b"".join(written.data for written in stream)
    found, wanted = rows_of(data), expected(data)
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted if wanted else found == []


def test_columns_come_in_the_order_that_is_asked_for() -> None:
    (chunk,) = scan(sample())
    batch = chunk.to_arrow(("value", "offset"))
    assert isinstance(batch, pa.RecordBatch)
    assert (batch.schema.names, batch.num_rows) == (["value", "offset"], len(chunk))
    assert chunk.to_arrow().schema.names == list(RECORD_COLUMNS)


def test_a_column_that_there_is_not_is_one_sentence() -> None:
    (chunk,) = scan(sample())
    with pytest.raises(UsageError, match=r"^columns of records are offset, .*; not 'ofset'$"):
        chunk.to_arrow(("ofset",))


def sample() -> bytes:
    return build_batch(BatchSpec(), [Record(Offset(each), TimeMs(each), b"k", b"v") for each in range(3)])
