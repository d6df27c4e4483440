"""Producers: what is refused, what is a duplicate, what is unstable, and what snapshots bring back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.releases import Release
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import BatchSpec, build_batch, build_marker
from log.batches.in_buffer import batches_in
from log.errors import (
    IllegalArgumentError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from log.partition.producer_append import AppendOrigin, MarkerRule
from log.partition.producer_entry import ProducerEntry, ProducerTable
from log.partition.producer_state import ProducerState
from log.record import ControlType, EndTransactionMarker, Record
from log.storage import MemoryStorage

SEQUENCE_MAX = 2**31 - 1
HOUR_MS = 3_600_000


def spec(producer: int, epoch: int, sequence: int, offset: int, transactional: bool = False) -> BatchSpec:
    return BatchSpec(
        Offset(offset),
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        is_transactional=transactional,
    )


def data(producer: int, epoch: int, sequence: int, offset: int, count: int = 1, *, txn: bool = False) -> RecordBatch:
    records = [Record(Offset(offset + place), TimeMs(1000 + offset), b"k", b"v") for place in range(count)]
    return next(iter(batches_in(build_batch(spec(producer, epoch, sequence, offset, txn), records))))


def marker(producer: int, epoch: int, offset: int, *, abort: bool = False, coordinator: int = 0) -> RecordBatch:
    kind = ControlType.ABORT if abort else ControlType.COMMIT
    built = build_marker(
        spec(producer, epoch, -1, offset, True), EndTransactionMarker(kind, coordinator), TimeMs(1000 + offset)
    )
    return next(iter(batches_in(built)))


def opened(storage: MemoryStorage | None = None) -> ProducerState:
    if storage is None:
        storage = MemoryStorage(ManualClock())
        storage.make_directory("t-0")
    return ProducerState.open(storage, "t-0", name="t-0", producer_id_expiration_ms=HOUR_MS)


def append(state: ProducerState, *batches: RecordBatch, origin: AppendOrigin = AppendOrigin.CLIENT) -> list[int]:
    """Append batches as the log does; return the last stable offset after each transaction that ended."""
    analysis = state.analyze(batches, origin)
    assert analysis.duplicate is None
    for prepared in analysis.appends:
        state.update(prepared)
    stable = []
    for completed in analysis.completed:
        stable.append(state.last_stable_offset_after(completed))
        state.complete(completed)
    state.update_map_end_offset(batches[-1].next_offset)
    state.check_invariants()
    return stable


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (
            data(7, 2, 12, 50),
            OutOfOrderSequenceError,
            "Out of order sequence number for producer 7 at offset 50 in partition t-0: 12 (incoming seq. number), "
            "9 (current end sequence number)",
        ),
        (
            data(7, 3, 5, 50),
            OutOfOrderSequenceError,
            "Invalid sequence number for new epoch of producer 7 at offset 50 in partition t-0: 3 (request epoch), "
            "5 (seq. number), 2 (current producer epoch)",
        ),
        (
            data(7, 1, 10, 50),
            InvalidProducerEpochError,
            "Epoch of producer 7 at offset 50 in t-0 is 1, which is smaller than the last seen epoch 2",
        ),
        (
            marker(7, 1, 50),
            InvalidProducerEpochError,
            "Epoch of producer 7 at offset 50 in t-0 is 1, which is smaller than the last seen epoch 2",
        ),
    ],
)
def test_what_does_not_follow_is_refused(batch: RecordBatch, error: type[Exception], message: str) -> None:
    state = opened()
    append(state, data(7, 2, 0, 0, 10))
    with pytest.raises(error) as refusal:
        state.analyze([batch], AppendOrigin.CLIENT)
    assert str(refusal.value) == message
    append(state, data(7, 2, 10, 10))
    state.analyze([batch], AppendOrigin.REPLICATION)


def test_a_new_epoch_begins_at_zero_and_an_unknown_producer_anywhere() -> None:
    state = opened()
    append(state, data(7, 0, 500, 0))
    append(state, data(7, 1, 0, 1))
    append(state, data(7, 1, 1, 2), data(7, 2, 0, 3), data(7, 2, 1, 4))
    with pytest.raises(OutOfOrderSequenceError):
        append(state, data(7, 2, 2, 5), data(7, 2, 4, 6))
    # After a marker nothing is known of the new epoch but that its first batch begins at 0.
    append(state, marker(7, 3, 7), origin=AppendOrigin.COORDINATOR)
    with pytest.raises(OutOfOrderSequenceError):
        append(state, data(7, 3, 1, 8))
    append(state, data(7, 3, 0, 8))


def test_after_a_marker_of_a_new_epoch_in_the_same_append_the_old_sequence_does_not_go_on() -> None:
    state = opened()
    append(state, data(7, 2, 0, 0, 10))
    with pytest.raises(OutOfOrderSequenceError):
        state.analyze([marker(7, 3, 10), data(7, 3, 10, 11)], AppendOrigin.CLIENT)
    append(state, marker(7, 3, 10), data(7, 3, 0, 11))


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    state = opened()
    append(state, data(7, 0, SEQUENCE_MAX - 1, 0, 4))
    entry = state.last_entry(ProducerId(7))
    assert entry is not None
    assert (entry.last_sequence, entry.batches[0].first_sequence) == (1, SEQUENCE_MAX - 1)
    append(state, data(7, 0, 2, 4), data(8, 0, SEQUENCE_MAX, 5))
    append(state, data(8, 0, 0, 6))
    assert state.analyze([data(7, 0, SEQUENCE_MAX - 1, 9, 4)], AppendOrigin.CLIENT).duplicate is not None


def test_coordinators_have_epochs_but_no_sequences() -> None:
    state = opened()
    append(state, data(7, 2, 5, 0))
    append(state, data(7, 2, 90, 1), origin=AppendOrigin.COORDINATOR)
    with pytest.raises(InvalidProducerEpochError):
        append(state, data(7, 1, 91, 2), origin=AppendOrigin.COORDINATOR)


def test_a_batch_outside_the_open_transaction_is_refused_even_of_replication() -> None:
    state = opened()
    append(state, data(7, 0, 0, 10, txn=True))
    for origin in AppendOrigin:
        with pytest.raises(InvalidTxnStateError) as refusal:
            state.analyze([data(7, 0, 1, 11)], origin)
        assert str(refusal.value) == "Expected transactional write from producer 7 at offset 11 in partition t-0"


def test_a_marker_of_a_former_coordinator_is_refused() -> None:
    state = opened()
    append(state, marker(7, 0, 0, coordinator=5), origin=AppendOrigin.COORDINATOR)
    append(state, marker(7, 0, 0, coordinator=5), origin=AppendOrigin.COORDINATOR)
    with pytest.raises(TransactionCoordinatorFencedError) as refusal:
        state.analyze([marker(7, 0, 1, coordinator=4)], AppendOrigin.COORDINATOR)
    assert str(refusal.value) == (
        "Invalid coordinator epoch for producerId 7 at offset 1 in partition t-0: 4 (zombie), 5 (current)"
    )
    append(state, marker(7, 0, 1, coordinator=4), origin=AppendOrigin.REPLICATION)


def test_idle_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    state = opened()
    append(state, data(7, 0, 0, 0), data(8, 0, 0, 1, txn=True), data(9, 0, 0, 2))
    state.remove_expired(TimeMs(1001 + HOUR_MS))
    assert [entry.producer_id for entry in state.producers] == [8, 9]
    assert not state.is_empty


def snapshots(*offsets: int) -> ProducerState:
    state = opened()
    for sequence, offset in enumerate(offsets):
        append(state, data(7, 0, sequence, offset - 1))
        state.take_snapshot()
    return state


def offsets_left(state: ProducerState) -> list[int]:
    return list(state._snapshots.offsets)


def test_going_back_takes_the_newest_snapshot_in_range_that_is_whole() -> None:
    state = snapshots(1, 2, 3, 4)
    state._snapshots._storage.open("t-0/00000000000000000003.snapshot").write_at(20, b"damage")
    state.truncate_and_reload(1, 3, TimeMs(1000))
    assert (offsets_left(state), state.map_end_offset) == ([2], 2)
    entry = state.last_entry(ProducerId(7))
    assert entry is not None
    assert entry.last_sequence == 1
    state.truncate_and_reload(5, 9, TimeMs(1000))
    assert (offsets_left(state), state.map_end_offset, state.is_empty) == ([], 5, True)


def test_stray_snapshots_go_but_the_last_one_beyond_all_segments() -> None:
    state = snapshots(1, 2, 3, 5, 6)
    state.remove_stray_snapshots([0, 2, 4])
    assert offsets_left(state) == [2, 6]
    state.remove_stray_snapshots([0, 2, 8])
    assert offsets_left(state) == [2]
    state.remove_stray_snapshots([])
    assert offsets_left(state) == [2]


@pytest.mark.parametrize(
    ("ids", "order"),
    [
        ([17, 2, 1], [17, 1, 2]),
        (range(13, 0, -1), range(1, 14)),
        ([16 * number + 1 for number in range(8)], [16 * number + 1 for number in range(8)]),
        ([16 * number + 1 for number in range(9)], [1, 33, 65, 97, 129, 17, 49, 81, 113]),
        ([2**32, 1], [2**32, 1]),
        ([3, 2**16], [2**16, 3]),
    ],
)
def test_producers_stand_in_the_order_of_javas_hash_table(ids: list[int], order: list[int]) -> None:
    table = ProducerTable()
    for producer_id in ids:
        table.put(ProducerEntry(ProducerId(producer_id)))
    assert [entry.producer_id for entry in table.entries()] == list(order)


def test_a_table_keeps_its_size_when_it_empties() -> None:
    table = ProducerTable()
    for producer_id in range(13):
        table.put(ProducerEntry(ProducerId(producer_id)))
    table.clear()
    for producer_id in (17, 1):
        table.put(ProducerEntry(ProducerId(producer_id)))
    assert [entry.producer_id for entry in table.entries()] == [1, 17]


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 12), st.integers(1, 3)), max_size=30)
)
def test_accepted_is_exactly_what_continues_or_begins_an_epoch(steps: list[tuple[int, int, int, int]]) -> None:
    """The oracle keeps the accepted batches of each producer, and says in one line each what may come next."""
    state, accepted, end = opened(), dict[int, list[tuple[int, int, int]]](), 0
    for producer, epoch, sequence, count in steps:
        known = accepted.setdefault(producer, [])
        of_epoch = [batch[1:] for batch in known if batch[0] == epoch][-5:]
        is_latest = not known or epoch >= known[-1][0]
        if is_latest and (sequence, count) in of_epoch and known[-1][0] == epoch:
            expected = "duplicate"
        elif not is_latest:
            expected = "epoch"
        elif not known or (known[-1][0] == epoch and sequence == sum(known[-1][1:])):
            expected = "news"
        else:
            expected = "news" if known[-1][0] != epoch and sequence == 0 else "order"
        try:
            analysis = state.analyze([data(producer, epoch, sequence, end, count)], AppendOrigin.CLIENT)
        except (OutOfOrderSequenceError, InvalidProducerEpochError) as refusal:
            found = "epoch" if isinstance(refusal, InvalidProducerEpochError) else "order"
        else:
            found = "news" if analysis.duplicate is None else "duplicate"
        assert found == expected
        if found == "news":
            append(state, data(producer, epoch, sequence, end, count))
            known.append((epoch, sequence, count))
            end += count


def refusal_of_marker(epoch: int, version: int | None, release: str, *, is_open: bool) -> str | None:
    """Return what a marker is refused with after a transaction of epoch 2 began, and perhaps ended."""
    state = opened()
    append(state, data(7, 2, 0, 0, 10, txn=True))
    if not is_open:
        append(state, marker(7, 2, 11), origin=AppendOrigin.COORDINATOR)
    try:
        state.analyze([marker(7, epoch, 12)], AppendOrigin.COORDINATOR, MarkerRule(version, Release(release)))
    except (IllegalArgumentError, InvalidProducerEpochError) as refusal:
        return str(refusal)
    return None


NOT_ABOVE = "Epoch of producer 7 at offset 12 in t-0 is 2, which is not above the last seen epoch 2"
UNKNOWN = (
    "the transaction version of the marker at offset 12 in t-0 is unknown;"
    " release 4.3 writes a marker with its version only"
)


@pytest.mark.parametrize(
    ("epoch", "version", "release", "is_open", "refused"),
    [
        (2, 1, "4.3", True, None),
        (2, 2, "4.3", True, NOT_ABOVE),
        (2, 2, "4.1", True, None),  # It does not ask for the version.
        (2, 2, "4.3", False, None),  # A retry.
        (3, 2, "4.3", True, None),
        (3, None, "4.3", True, UNKNOWN),
        (3, None, "4.1", True, None),
    ],
)
def test_a_marker_of_transactions_version_2_has_a_new_epoch(
    epoch: int, version: int | None, release: str, is_open: bool, refused: str | None
) -> None:
    assert refusal_of_marker(epoch, version, release, is_open=is_open) == refused


@pytest.mark.parametrize(("release", "is_taken"), [("4.2", False), ("4.3", True)])
def test_a_marker_of_the_last_epoch_is_taken_since_4_3(release: str, is_taken: bool) -> None:
    state = opened()
    append(state, data(7, 32767, 0, 0, 10, txn=True))
    rule = MarkerRule(2, Release(release))
    if is_taken:
        state.analyze([marker(7, 32767, 12)], AppendOrigin.COORDINATOR, rule)
    else:
        with pytest.raises(InvalidProducerEpochError, match="is 32767, which is not above the last seen epoch 32767"):
            state.analyze([marker(7, 32767, 12)], AppendOrigin.COORDINATOR, rule)


def test_a_replicated_marker_is_taken_whatever_its_version() -> None:
    state = opened()
    append(state, data(7, 2, 0, 0, 10, txn=True))
    state.analyze([marker(7, 2, 12)], AppendOrigin.REPLICATION, MarkerRule(None))
