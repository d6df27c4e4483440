"""One replica's log against a list of batches, as its broker leads and follows in turn: cuts, new starts and reads.

The list keeps whole batches as they must stand in the file. Where segments begin is taken from the log. After each step
the file of the leader epochs holds them all, as a power loss would bring back epochs that were only cut in memory.

Source: Kafka's UnifiedLog.{appendAsLeader,truncateTo,truncateFullyAndStartAt} and LocalLog.read as facts.
"""

from __future__ import annotations

from typing import Final

import attrs
from hypothesis import given, settings

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from log.storage import MemoryStorage
from log.storage.checkpoints import LEADER_EPOCH_FILE, read_epoch_checkpoint
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import EpochStart, LogState
from replication.rules.switches import CURRENT
from tests.log.made import DIRECTORY, NOW, config, opened
from tests.support.drawing import DRAWS, Draws

STEP_COUNT: Final = 25
_RETENTION_MS: Final = 1_000


@attrs.frozen
class _Batch:
    """Hold one batch as it must be stored."""

    base_offset: int
    end_offset: int
    data: bytes


class _Life:
    """Take one replica's log through its steps."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        settings = config(segment_bytes=draws.one((250, 500, 100_000)), retention_ms=_RETENTION_MS)
        self._log = ReplicaLog(opened(MemoryStorage(ManualClock(NOW)), settings), CURRENT)
        self._batches: list[_Batch] = []
        self._start = self._end = self._high = 0
        self._epoch = draws.number(0, 2)
        self._starts: dict[int, int] = {}
        """Where each epoch begins."""
        self._cut_to: int | None = 0
        self._value = 0
        self._done: list[str] = []

    def run(self) -> str:
        """Change the log until the steps are over or something differs."""
        for _ in range(STEP_COUNT):
            seen = (self._log.version, self._log.state, list(self._batches))
            self._done.append(self._step())
            if self._log.version == seen[0] and (self._log.state is not seen[1] or self._batches != seen[2]):
                return f"after {', '.join(self._done)} its version is still {seen[0]}"
            told = self._compared()
            if told:
                return f"after {', '.join(self._done)} {told}"
        return ""

    def _step(self) -> str:
        """Do one thing to the log and to the list, and say what."""
        draws, act = self._draws, self._draws.number(0, 17)
        if act < 8:
            return self._append(as_leader=act < 5)
        if act == 8:
            return self._lead_anew()
        if act > 15:
            return self._forget_old() if act == 16 else self._note_cleaned()
        offset = draws.number(self._start, self._end + 1)
        if act < 11:
            self._log.set_high_watermark(Offset(offset))
            self._high = min(offset, self._end)
            return f"set_high_watermark({offset})"
        if act == 11:
            offset = draws.number(0, self._high)
            self._log.raise_start(Offset(offset))
            if offset > self._start:
                self._begin_at(offset)
            return f"raise_start({offset})"
        if act == 12:
            offset = draws.number(0, self._end + 3)
            self._log.start_anew(Offset(offset), NOW)
            self._batches, self._starts, self._cut_to = [], {}, 0
            self._start = self._end = self._high = offset
            return f"start_anew({offset})"
        if act == 13:
            self._log.seen()
            self._cut_to = None
            return "seen()"
        offset = draws.number(max(0, self._start - 1), self._end + 1)
        self._log.cut(Offset(offset), NOW)
        self._cut(offset)
        return f"cut({offset})"

    def _lead_anew(self) -> str:
        """Let a new epoch begin, whose start may be noted before anything is written in it."""
        self._epoch += self._draws.number(1, 2)
        if self._draws.is_one_in(2):
            return f"epoch {self._epoch}"
        before = self._log.state
        entry = EpochStart(LeaderEpoch(self._epoch), Offset(self._end))
        self._begin_epoch()
        epochs = tuple(each for each in before.epochs if each.start_offset < self._end)
        self._log.take_epochs(attrs.evolve(before, epochs=(*epochs, entry)))
        self._log.take_epochs(self._log.state)
        return f"take_epochs({entry})"

    def _forget_old(self) -> str:
        """Delete what is old: whole segments of what is replicated, but no empty one to which the next batch goes."""
        later_ms, segments = self._draws.one((0, _RETENTION_MS + 1)), self._log.log.segments
        ends = [*(int(segment.base_offset) for segment in segments[1:]), self._end]
        if segments[-1].size_bytes == 0:
            ends.pop()
        self._log.forget_old(TimeMs(NOW + later_ms))
        start = max((end for end in ends if end <= self._high), default=0)
        if later_ms and start > self._start:
            self._begin_at(start)
        return f"forget_old({later_ms} ms later)"

    def _note_cleaned(self) -> str:
        before = self._log.version, self._log.cleaning_count
        self._log.note_cleaned()
        after = self._log.version, self._log.cleaning_count
        assert all(now > then for now, then in zip(after, before, strict=True)), after
        return "note_cleaned()"

    def _append(self, *, as_leader: bool) -> str:
        """Append a batch that no other equals."""
        count, base = self._draws.number(1, 3), self._end
        self._value += 1
        epoch = LeaderEpoch(self._epoch)
        spec, value = BatchSpec(Offset(base), partition_leader_epoch=epoch), b"%d" % self._value
        data = build_batch(spec, [Record(Offset(base + each), NOW, None, value) for each in range(count)])
        if as_leader:
            sent = build_batch(BatchSpec(), [Record(Offset(each), NOW, None, value) for each in range(count)])
            info = self._log.append_as_leader(sent, epoch, NOW)
            assert (info.first_offset, info.last_offset) == (base, base + count - 1), info
        else:
            self._log.append_as_follower(data, NOW)
        self._batches.append(_Batch(base, base + count, data))
        self._begin_epoch()
        self._end = base + count
        return f"{'append' if as_leader else 'copy'} {count} of {self._epoch}"

    def _begin_epoch(self) -> None:
        """Let the epoch begin at the end, unless it has begun; of epochs without records the last one stays."""
        if self._epoch not in self._starts:
            self._starts = {epoch: start for epoch, start in self._starts.items() if start < self._end}
            self._starts[self._epoch] = self._end

    def _begin_at(self, offset: int) -> None:
        self._start = offset
        begun = [epoch for epoch, start in self._starts.items() if start <= offset]
        later = {epoch: start for epoch, start in self._starts.items() if start > offset}
        self._starts = dict.fromkeys(begun[-1:], offset) | later

    def _cut(self, offset: int) -> None:
        """Cut the list: a batch that the offset lies in goes whole."""
        if offset < self._end:
            self._cut_to = offset if self._cut_to is None else min(self._cut_to, offset)
            self._batches = [each for each in self._batches if each.end_offset <= offset]
            self._start, self._high = min(self._start, offset), min(self._high, offset)
            self._end = offset
        self._starts = {epoch: start for epoch, start in self._starts.items() if start < self._end}

    def _compared(self) -> str:
        """Return what of the log differs from the list."""
        log, draws = self._log, self._draws
        epochs = tuple(EpochStart(LeaderEpoch(epoch), Offset(start)) for epoch, start in self._starts.items())
        state = LogState(Offset(self._start), Offset(self._end), Offset(self._high), epochs)
        if log.state != state:
            return f"it is {log.state}, the list {state}"
        if log.cut_to != self._cut_to:
            return f"it was cut to {log.cut_to}, the list to {self._cut_to}"
        stored = read_epoch_checkpoint(log.log.storage, f"{DIRECTORY}/{LEADER_EPOCH_FILE}")
        if [(each.epoch, each.start_offset) for each in stored] != list(self._starts.items()):
            return f"its file has the epochs {stored}, the list {self._starts}"
        for _ in range(2):
            last = self._batches[-1].base_offset if self._batches and draws.is_one_in(2) else self._start
            offset = draws.one((max(last, self._start), draws.number(self._start, self._end)))
            size = draws.one((1, 100, 300, 100_000))
            told, wanted = log.read(Offset(offset), SizeBytes(size)), self._read(offset, size)
            if told != wanted:
                return f"a read of {size} bytes at {offset} has {len(told)} bytes, and {len(wanted)} are due"
        return ""

    def _read(self, offset: int, size: int) -> bytes:
        """Return what a follower is sent from an offset on: a segment's bytes up to a size, one batch at least."""
        left = [each for each in self._batches if each.end_offset > offset]
        if not left:
            return b""
        bases = [segment.base_offset for segment in self._log.log.segments if segment.base_offset > left[0].base_offset]
        here = [each.data for each in left if each.base_offset < min(bases, default=self._end)]
        return b"".join(here)[: max(size, len(here[0]))]


@settings(max_examples=60)
@given(draws=DRAWS)
def test_a_replica_s_log_is_its_list(draws: Draws) -> None:
    assert _Life(draws).run() == ""
