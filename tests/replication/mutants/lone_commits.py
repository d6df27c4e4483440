"""Draw commits and offset fetches, and say which fetches some order of the commits explains.

What it decides: when commits begin and end, how they are answered, what each fetch shows, and unclean elections, from a
seed.

Constraints: the reference puts commits and fetch in every order there is. Two of which one ended before the other began
keep their order; what was acknowledged is there, what was refused is not, and of anything else both are allowed.

Source: ours, as `replication.groups.commits`; a register whose operations are linearizable.
"""

from __future__ import annotations

from itertools import permutations
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import TimeMs
from replication.groups.commits import CommitHistory, CommitMade, Loss, OffsetShown
from tests.replication.mutants.drawing import Draws

HISTORY_COUNT: Final = 40
_STREAM: Final = 58
_KEYS: Final = tuple(("g", TopicPartition("t", PartitionId(each))) for each in range(2))
_OTHER: Final = ("h", TopicPartition("t", PartitionId(0)))
_ANSWERS: Final = (ErrorCode.NONE, ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REQUEST_TIMED_OUT, None)
_LAST_MS: Final = 12
_NEVER: Final = 10**9


@attrs.frozen
class _Made:
    """Hold one commit as it was drawn; `end_ms` is that of a certain answer."""

    key: object
    offset: int
    error: ErrorCode | None
    start_ms: int
    end_ms: int


def commits_noticed(seed: int) -> str:
    """Return a fetch that is explained and must not be, or the reverse, "" if there is none."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_compared(draws) for _ in range(HISTORY_COUNT)) if told), "")


def _compared(draws: Draws) -> str:
    history = CommitHistory()
    made: list[_Made] = []
    for key in (*_KEYS, _OTHER):
        for _ in range(draws.number(0, 4)):
            start_ms = draws.number(0, _LAST_MS)
            commit = CommitMade(key, Offset(draws.number(0, 3)), "m", TimeMs(start_ms))
            error, end_ms = draws.one(_ANSWERS), start_ms + draws.number(0, 6)
            if error is not None:
                commit.answer(error, TimeMs(end_ms))
            is_certain = error in (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION)
            made.append(_Made(key, commit.offset, error, start_ms, end_ms if is_certain else _NEVER))
            history.commits.append(commit)
    if draws.is_one_in(3):
        start_ms = draws.number(0, _LAST_MS)
        history.losses["g"] = [Loss(TimeMs(start_ms), TimeMs(start_ms + draws.number(0, 6)))]
    for key in (*_KEYS, _OTHER):
        start_ms = draws.number(0, _LAST_MS)
        shown = draws.one((None, *map(Offset, range(5))))
        history.shown.append(OffsetShown(key, shown, "m", TimeMs(start_ms), TimeMs(start_ms + draws.number(0, 3))))
    found = [each.shown for each in history.impossible()]
    for shown in history.shown:
        is_possible = _is_explained(shown, made, history.losses.get(shown.key[0], []))
        if is_possible == (shown in found):
            return f"{shown} is found: {shown in found}, after {[each for each in made if each.key == shown.key]}"
    return ""


def _is_explained(shown: OffsetShown, made: list[_Made], losses: list[Loss]) -> bool:
    """Return whether some order of some commits has the one that is shown right before the fetch."""
    sure: list[_Made] = []
    unsure: list[_Made] = []
    for commit in made:
        is_lost = any(loss.start_ms <= shown.end_ms and commit.start_ms <= loss.end_ms for loss in losses)
        if commit.key == shown.key and commit.error is not ErrorCode.ILLEGAL_GENERATION:
            (sure if commit.error is ErrorCode.NONE and not is_lost else unsure).append(commit)
    for count in range(2 ** len(unsure)):
        chosen = [*sure, *(each for place, each in enumerate(unsure) if count >> place & 1)]
        for order in permutations((*chosen, shown)):
            place = order.index(shown)
            last = order[place - 1].offset if place else None
            if last == shown.offset and _keeps_time(order):
                return True
    return False


def _keeps_time(order: tuple[_Made | OffsetShown, ...]) -> bool:
    """Return whether nothing stands after what began after its end."""
    return not any(
        later.end_ms < earlier.start_ms for place, earlier in enumerate(order) for later in order[place + 1 :]
    )
