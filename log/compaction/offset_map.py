"""Store the latest offset of each key in bounded memory.

Memory is 24 bytes a slot, 16 for the hash of a key and 8 for its offset; only a part of the slots, the load factor, may
be taken. Filling ends at the first record with a key after the last free slot was taken, be its key new or not, also in
the middle of a batch. Up to `latest_offset` the map knows all keys: records above it all stay.

The table begins small, since one that fits the processor's cache is several times as fast as one of 128 MiB that is
nearly empty, and doubles when half full. Most batches of a log that is overwritten often hold nothing that is still the
latest: `superseded` finds them by the sorted offsets of the map, without a look at their records.

Source: org.apache.kafka.storage.internals.log.SkimpyOffsetMap, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.errors import UsageError
from broker.ids import Offset
from broker.units import MIB
from log.batches.record_columns import ByteArray
from log.compaction import key_kernels
from log.compaction.key_kernels import BatchColumns, HashTable, KeyColumns

SLOT_SIZE_BYTES: Final = 24
SLOT_COUNT: Final = 128 * MIB // SLOT_SIZE_BYTES  # Kafka's log.cleaner.dedupe.buffer.size.
LOAD_FACTOR: Final = 0.9  # Kafka's log.cleaner.io.buffer.load.factor.
CAPACITY_MIN: Final = 1 << 14
SLOT_COUNT_MAX: Final = 2**31 // SLOT_SIZE_BYTES  # Kafka's map is one Java array.


@attrs.frozen(eq=False)
class LatestRecords:
    """Hold the mask of latest records (bool[N]), their count per batch (int64[B]), the count without key."""

    kept: NDArray[np.bool_]
    kept_count: Int64Array
    keyless_count: int


class OffsetMap:
    """Map keys to their latest offsets in a hash table of fixed size; empty at first.

    Raises UsageError if `slot_count` times `load_factor` is 1 or less: no pass could make progress.
    """

    def __init__(self, slot_count: int, load_factor: float = LOAD_FACTOR) -> None:
        if not 0 < load_factor <= 1 or slot_count * load_factor <= 1 or slot_count > SLOT_COUNT_MAX:
            raise UsageError(
                f"an offset map of {slot_count} slots and load factor {load_factor} cannot be; "
                f"at most {SLOT_COUNT_MAX} slots, and more than one of them to be taken"
            )
        self.slot_count = slot_count
        self.key_count_max = int(slot_count * load_factor)
        self._table = _empty_table(slot_count, CAPACITY_MIN)
        self._state = np.zeros(key_kernels.MAP_STATE_WIDTH, np.int64)
        self._state[key_kernels.ENTRY_COUNT_MAX] = self.key_count_max
        self._state[key_kernels.LATEST_OFFSET] = -1
        self._known_from: Offset | None = None  # The first offset from which all keys are known.
        self._sorted_offsets: Int64Array | None = None
        self._set_growth()

    def __len__(self) -> int:
        return int(self._state[key_kernels.ENTRY_COUNT])

    @property
    def latest_offset(self) -> Offset:
        """Return the last offset up to which the map contains all keys; -1 at first."""
        return Offset(int(self._state[key_kernels.LATEST_OFFSET]))

    @property
    def record_count(self) -> int:
        """Return the number of records read to fill the map."""
        return int(self._state[key_kernels.RECORD_COUNT])

    def put(self, keys: KeyColumns, batches: BatchColumns, start_offset: Offset) -> bool:
        """Put the records from `start_offset` on, batch by batch; return False if the map was full before the end.

        `latest_offset` becomes that of each batch in turn, also of those to SKIP, or of the last record taken in.
        """
        self._state[key_kernels.START_OFFSET] = start_offset
        self._sorted_offsets = None
        if self._known_from is None and len(batches.base_offset):
            self._known_from = Offset(max(start_offset, int(batches.base_offset[0])))
        batch, reason = key_kernels.map_keys(keys, batches, 0, self._table, self._state)
        while reason == key_kernels.GROW:
            self._grow(len(self) + int(batches.first_record[batch + 1] - batches.first_record[batch]))
            batch, reason = key_kernels.map_keys(keys, batches, batch, self._table, self._state)
        return reason == key_kernels.DONE

    def move_to(self, offset: Offset) -> None:
        """Set `latest_offset` to `offset`; the log has no further records up to there."""
        self._state[key_kernels.LATEST_OFFSET] = offset

    def latest(self, keys: KeyColumns, batches: BatchColumns) -> LatestRecords:
        """Return a mask of the records that are not superseded; only batches that are BY_KEY are filtered."""
        kept = np.empty(len(keys.offset), np.bool_)
        kept_count = np.empty(len(batches.last_offset), np.int64)
        keyless = key_kernels.mark_latest(keys, batches, self.latest_offset, self._table, (kept, kept_count))
        return LatestRecords(kept, kept_count, int(keyless))

    def superseded(self, base_offset: Int64Array, last_offset: Int64Array) -> NDArray[np.bool_]:
        """Return a mask (bool[B]) of the batches of which every record is superseded, from offsets alone.

        A batch is superseded if the map was filled with all of it and no key's latest offset lies in it. If the map has
        taken records that no broker writes into a compacted log (see `map_keys`), every answer is False. The batches
        must be those that were filtered by key when the map was filled.
        """
        if self._known_from is None or self._state[key_kernels.ODD_COUNT]:
            return np.zeros(len(base_offset), np.bool_)
        if self._sorted_offsets is None:
            stored = self._table[key_kernels.PLACE_WIDTH - 1 :: key_kernels.PLACE_WIDTH]
            self._sorted_offsets = np.sort(stored[stored != 0].view(np.int64)) - 1
        before = np.searchsorted(self._sorted_offsets, base_offset, side="left")
        through = np.searchsorted(self._sorted_offsets, last_offset, side="right")
        is_known = (base_offset >= self._known_from) & (last_offset <= self.latest_offset)
        superseded: NDArray[np.bool_] = is_known & (before == through)
        return superseded

    def check_invariants(self) -> None:
        """Raise AssertionError if the hash table is not sound."""
        places = self._table.reshape(-1, key_kernels.PLACE_WIDTH)
        taken = places[places[:, 2] != 0]
        assert len(taken) == len(self) <= self.key_count_max < self.slot_count + 1, len(self)
        assert len(taken) < len(places), "no place is free"
        assert len(np.unique(taken[:, :2], axis=0)) == len(taken), "a hash stands twice"

    def _grow(self, entry_count: int) -> None:
        """Make room for `entry_count` keys, or for as many as are allowed."""
        capacity = len(self._table) // key_kernels.PLACE_WIDTH
        while capacity < 2 * entry_count and capacity <= self.slot_count:
            capacity *= 2
        old, self._table = self._table, _empty_table(self.slot_count, capacity)
        key_kernels.refill(old, self._table)
        self._set_growth()

    def _set_growth(self) -> None:
        """Say at which number of keys the table is next made larger."""
        capacity = len(self._table) // key_kernels.PLACE_WIDTH
        largest = capacity > self.slot_count
        self._state[key_kernels.ENTRY_COUNT_GROWTH] = np.iinfo(np.int64).max if largest else capacity // 2


def hashed(data: ByteArray, position: Int64Array, size: Int32Array, offset: Int64Array) -> KeyColumns:
    """Return the hashed keys of records: `size` bytes of `data` from `position` on, size -1 for no key."""
    low, high = np.empty((2, len(offset)), np.uint64)
    key_kernels.hash_keys(data, position, size, low, high)
    return KeyColumns(low, high, size, offset)


def _empty_table(slot_count: int, capacity: int) -> HashTable:
    """Return a table of `capacity` places; never of more than the slots, and the one that stays free."""
    return np.zeros(min(slot_count + 1, capacity) * key_kernels.PLACE_WIDTH, np.uint64)
