"""Decompressed records in one buffer: what was put there, what was copied there, and what is too large for it."""

from __future__ import annotations

import numpy as np
import pytest

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.batch_v2 import HEADER
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.header_scan import scan_headers
from log.batches.header_table import CHUNK_BYTES
from log.batches.memory import ColumnMemory
from log.batches.payloads import ROOM_BYTES_MIN, Payloads
from log.record import Record


def batch(base_offset: int, size: int) -> bytes:
    return build_batch(BatchSpec(Offset(base_offset)), (Record(Offset(base_offset), TimeMs(5), b"key", b"v" * size),))


def test_records_put_into_the_room_and_records_handed_over_are_read_alike() -> None:
    data = [batch(0, 10), batch(1, 300), batch(2, 0)]
    payloads = Payloads(ColumnMemory())
    first, *others = (each[HEADER.size :] for each in data)
    payloads.room[: len(first)] = first
    assert payloads.add(len(first))
    assert all(payloads.add(each) for each in others)
    columns = payloads.fill(scan_headers(b"".join(data))).next_columns()
    assert columns.offset.tolist() == [0, 1, 2]
    assert [columns.value(row) for row in range(3)] == [b"v" * 10, b"v" * 300, b""]
    assert len(columns.data) == sum(len(each) - HEADER.size for each in data)


def test_a_batch_larger_than_the_buffer_stands_alone_and_is_not_copied() -> None:
    large = batch(0, CHUNK_BYTES + ROOM_BYTES_MIN)
    payload = large[HEADER.size :]
    behind_another = Payloads(ColumnMemory())
    assert behind_another.add(batch(0, 1)[HEADER.size :])
    assert not behind_another.add(payload)
    payloads = Payloads(ColumnMemory())
    assert payloads.add(payload)
    assert payloads.is_full
    columns = payloads.fill(scan_headers(large)).next_columns()
    assert np.shares_memory(columns.data, np.frombuffer(payload, np.uint8))
    assert columns.value_size.tolist() == [CHUNK_BYTES + ROOM_BYTES_MIN]


def test_a_buffer_is_full_while_there_is_room_for_what_lz4_asks_for() -> None:
    payloads = Payloads(ColumnMemory())
    assert payloads.add(CHUNK_BYTES)
    assert not payloads.is_full
    assert payloads.add(1)
    assert payloads.is_full
    assert len(payloads.room) == ROOM_BYTES_MIN - 1


def test_headers_and_payloads_are_as_many() -> None:
    payloads = Payloads(ColumnMemory())
    payloads.add(batch(0, 1)[HEADER.size :])
    with pytest.raises(AssertionError, match=r"\(2, 1\)"):
        payloads.fill(scan_headers(batch(0, 1) + batch(1, 1)))
