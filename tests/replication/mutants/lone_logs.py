"""Drive a log at random, and compare it with a plain list: the campaign's runs of a log without a cluster.

What it decides: which operations a log goes through, from a seed: those of the tests' machine (`LogMachine`), which
compares a log in memory, one on files and a plain list of records after each of them.

Constraints: clusters write one small batch of a few kinds at a time; transactions, columns, look-ups by time and
indexes that are built anew are reached here only. Both logs are in memory, as times of real files are not drawn. What
is scheduled runs before a truncation: as in Kafka, a later flush would leave the recovery point behind the log's end.
No log loses power here: what has to be sure before that is the business of the machine's own test.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.ids import Offset
from log.storage import DiskImage, MemoryStorage, RecordedStorage
from tests.log.made import DIRECTORY
from tests.log.partition.test_log_machine import LogMachine, bases_of

STEP_COUNT: Final = 60
_RENAMED: Final = f"{DIRECTORY}.x-delete"
_STREAM: Final = 16


class _TwiceInMemory(LogMachine):
    """The tests' machine with both logs in memory."""

    def set_storages(self, image: DiskImage) -> None:
        """Begin with the same disk twice."""
        self.recorded = RecordedStorage(MemoryStorage(self.clock, image))
        self.storages = (self.recorded, MemoryStorage(self.clock, image))

    def start_anew(self, offset: int) -> None:
        """Drop all that the logs hold, as a follower does whose leader has none of it."""
        self.plain.truncate_to(0)
        self.plain.start_offset = self.plain.end_offset = self.plain.high_watermark = offset
        for log in self.logs:
            log.truncate_fully_and_start_at(Offset(offset), now_ms=self.now_ms)
            assert (bases_of(log), log.size_bytes) == ({offset}, 0)
        self.sync_files()
        self.lead_anew()

    def rename(self) -> None:
        """Give the logs another directory, write there, and give them back their own."""
        for log in self.logs:
            before = log.state()
            log.rename_directory(_RENAMED)
            log.flush(now_ms=self.now_ms)
            log.take_producer_snapshot()
            assert not log.storage.is_directory(DIRECTORY)
            assert log.storage.is_directory(_RENAMED)
            log.rename_directory(DIRECTORY)
            assert attrs.evolve(before, recovery_point=log.recovery_point) == log.state()


class _Draws:
    """Draw the arguments of an operation."""

    def __init__(self, seed: int) -> None:
        self._entropy = SplitMix64(derive(seed, _STREAM))

    def number(self, least: int, most: int) -> int:
        """Return a number from `least` to `most`."""
        return least + self._entropy.next_int_bound(most - least + 1)

    def pairs(self, most: int = 3) -> list[tuple[bytes, bytes]]:
        """Return one to `most` keys with values."""
        return [
            (b"abc"[at : at + 1], bytes(self.number(0, 255) for _ in range(self.number(0, 12))))
            for at in (self.number(0, 2) for _ in range(self.number(1, most)))
        ]


_OPERATIONS: Final[Mapping[str, tuple[int, Callable[[_Draws], dict[str, Any]]]]] = MappingProxyType(
    {
        "append": (6, lambda draws: {"pairs": draws.pairs(), "idempotent": bool(draws.number(0, 1))}),
        "append_as_follower": (2, lambda draws: {"pairs": draws.pairs(), "gap": draws.number(0, 2)}),
        "append_columns": (
            2,
            lambda draws: {
                "pairs": draws.pairs(12),
                "per_batch": draws.number(1, 3),
                "is_of_next": bool(draws.number(0, 1)),
            },
        ),
        "append_in_transaction": (2, lambda draws: {"pairs": draws.pairs()}),
        "end_transaction": (2, lambda draws: {"is_abort": bool(draws.number(0, 1))}),
        "retry": (1, lambda draws: {}),
        "read": (2, lambda draws: {"offset": draws.number(0, 60)}),
        "look_up_by_time": (1, lambda draws: {"age": draws.number(-1, 3_000)}),
        "read_committed": (1, lambda draws: {}),
        "compact": (1, lambda draws: {}),
        "consume": (
            2,
            lambda draws: {
                "offset": draws.number(0, 60),
                "high": draws.number(0, 60),
                "is_committed": bool(draws.number(0, 1)),
            },
        ),
        "be_refused": (1, lambda draws: {}),
        "lead_anew": (1, lambda draws: {}),
        "roll": (1, lambda draws: {"has_strays": bool(draws.number(0, 1))}),
        "flush": (1, lambda draws: {}),
        "sleep": (2, lambda draws: {"duration": draws.number(0, 700)}),
        "raise_high_watermark": (2, lambda draws: {"offset": draws.number(0, 60)}),
        "delete_before": (1, lambda draws: {"offset": draws.number(0, 60)}),
        "retain": (1, lambda draws: {}),
        "truncate": (2, lambda draws: {"offset": draws.number(0, 60), "is_copied": bool(draws.number(0, 1))}),
        "start_anew": (1, lambda draws: {"offset": draws.number(0, 60)}),
        "rename": (1, lambda draws: {}),
        "reopen": (1, lambda draws: {"clean": bool(draws.number(0, 1)), "recovery_point": "start"}),
    }
)
"""How often each operation comes, and how its arguments are drawn."""


def log_noticed(seed: int) -> str:
    """Return what one log and its plain list differ in, "" if in nothing; the machine's assertions are raised."""
    draws, machine = _Draws(seed), _TwiceInMemory()
    try:
        machine.open(draws.number(150, 400), (0, 100, 1_000)[draws.number(0, 2)], (48, 1_000)[draws.number(0, 1)])
        names = [name for name, (weight, _) in _OPERATIONS.items() for _ in range(weight)]
        for _ in range(STEP_COUNT):
            name = names[draws.number(0, len(names) - 1)]
            if not _is_possible(machine, name):
                continue
            if name in ("truncate", "start_anew"):
                machine.sleep(duration=700)
            getattr(machine, name)(**_OPERATIONS[name][1](draws))
            machine.the_logs_hold_what_the_list_holds()
            machine.the_two_logs_are_alike_to_the_byte()
    finally:
        machine.teardown()
    return ""


def _is_possible(machine: LogMachine, name: str) -> bool:
    first_open = machine.plain.first_open_offset()
    if name == "end_transaction":
        return first_open is not None
    if name == "read_committed":
        return first_open is None or first_open >= machine.plain.start_offset
    return name != "retry" or machine.last_sent is not None
