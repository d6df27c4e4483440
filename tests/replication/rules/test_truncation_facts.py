"""Truncation against whole logs: what followers keep, and what leaders answer about epochs, by the records themselves.

Two logs are alike up to a record that both hold of one epoch, as each epoch had one leader.

Source: KIP-101, KIP-279 and KIP-320: a follower's log becomes the longest prefix that it has in common with its
leader's; LeaderEpochFileCache.endOffsetFor and AbstractFetcherThread.fetchOffsetAndTruncate, as facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs
import pytest
from hypothesis import given

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from replication.rules.epochs import assigned, end_offset_for, latest_epoch, trimmed_at_end, trimmed_at_start
from replication.rules.fetch import FetchAnswer, FetchRequest, after_answer, answer_fetch
from replication.rules.follower_read import Position, PositionCheck, check_position
from replication.rules.partition import (
    UNKNOWN_EPOCH,
    EpochEnd,
    EpochStart,
    Follower,
    FollowerState,
    LeaderState,
    LogState,
    PartitionEpoch,
)
from replication.rules.switches import CURRENT, Truncation
from replication.rules.truncation import (
    FencedReaction,
    FirstStep,
    answer_epoch_end,
    cut_for,
    first_step,
    may_apply,
    on_fenced,
    out_of_range,
    start_raised,
    started_anew,
    truncated,
)
from tests.support.drawing import DRAWS, Draws

ROUNDS_MAX: Final = 40
_ASKING: Final = attrs.evolve(CURRENT, truncation=Truncation.BY_COMMON_EPOCH)
_ONE, _TWO = BrokerId(1), BrokerId(2)


def _histories(draws: Draws) -> tuple[list[list[int]], int]:
    """Return the logs of some replicas and the next leader's epoch; any replica may have led at any time."""
    logs: list[list[int]] = [[] for _ in range(3)]
    epoch = draws.number(0, 2)
    for _ in range(draws.number(1, 6)):
        leader = draws.one(logs)
        leader += [epoch] * draws.number(0, 3)
        for log in logs:
            if log is not leader and draws.is_one_in(2):
                common = _common(log, leader)
                log[common:] = leader[common : draws.number(common, len(leader))]
        epoch += draws.number(1, 2)
    return logs, epoch


def _common(one: list[int], other: list[int]) -> int:
    """Return the length of the longest prefix that two logs have in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def _starts(log: list[int], start: int = 0) -> tuple[EpochStart, ...]:
    """Return where each epoch of the records begins, of a log whose records before `start` are gone."""
    begun: dict[int, int] = {}
    for offset, epoch in enumerate(log):
        if offset <= start:
            begun = {epoch: start}
        begun.setdefault(epoch, offset)
    return tuple(EpochStart(LeaderEpoch(epoch), Offset(offset)) for epoch, offset in begun.items())


def _state(log: list[int], high: int, start: int = 0) -> LogState:
    return LogState(Offset(start), Offset(len(log)), Offset(high), _starts(log, start))


def _of_leader(log: list[int], high: int, epoch: int) -> LogState:
    """Return the log of a leader that has written nothing in its epoch yet."""
    state = _state(log, high)
    return attrs.evolve(state, epochs=(*state.epochs, EpochStart(LeaderEpoch(epoch), state.end_offset)))


def _leading(epoch: int, log: list[int]) -> LeaderState:
    leader_epoch, end = LeaderEpoch(epoch), Offset(len(log))
    return LeaderState(_ONE, leader_epoch, PartitionEpoch(0), end, (_ONE, _TWO), (Follower(_TWO),))


def _cache(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Yield where the cache of a log is not that of its records."""
    starts, end = _starts(leader), len(leader)
    if latest_epoch(starts) != (leader[-1] if leader else -1):
        yield f"the latest epoch is {latest_epoch(starts)}"
    for asked in range(-1, epoch + 2):
        told = end_offset_for(starts, LeaderEpoch(asked), Offset(end), CURRENT)
        known = [each for each in leader if each <= asked]
        wanted = (max(known, default=asked), sum(each <= asked for each in leader))
        if asked < 0 or not leader or asked > leader[-1]:
            wanted = (-1, -1)
        if (told.epoch, told.end_offset) != wanted:
            yield f"epoch {asked} ends at {told}, by the records at {wanted}"
    place = draws.number(0, end)
    if trimmed_at_end(starts, Offset(place)) != _starts(leader[:place]):
        yield f"cut to {place} it holds {trimmed_at_end(starts, Offset(place))}"
    if place < end and trimmed_at_start(starts, Offset(place)) != _starts(leader, place):
        yield f"from {place} on it holds {trimmed_at_start(starts, Offset(place))}"
    at, new = Offset(draws.number(0, end + 1)), LeaderEpoch(draws.number(0, epoch))
    told_cache = assigned(starts, new, at)
    kept = tuple(each for each in starts if each.epoch < new and each.start_offset < at)
    is_known = bool(starts) and starts[-1].epoch == new and starts[-1].start_offset <= at
    if told_cache != (starts if is_known else (*kept, EpochStart(new, at))):
        yield f"with {new} from {at} on it holds {told_cache}"


def _converged(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Fetch from the leader until nothing is cut any more (KIP-595), or ask it before (KIP-279)."""
    common = _common(leader, follower)
    high, known = draws.number(0, common), draws.number(0, common)
    role, of_leader = _leading(epoch, leader), _of_leader(leader, high, epoch)
    log = _state(follower, known)
    if first_step(log, CURRENT) is not FirstStep.FETCH:
        yield f"its first step is {first_step(log, CURRENT)}"
    for _ in range(ROUNDS_MAX):
        request = FetchRequest(
            replica=_TWO,
            offset=log.end_offset,
            leader_epoch=LeaderEpoch(epoch),
            last_fetched_epoch=latest_epoch(log.epochs),
        )
        answer = answer_fetch(role, of_leader, request, CURRENT)
        if answer.diverging is None or answer.error is not ErrorCode.NONE:
            break
        log = after_answer(log, answer, CURRENT)
    if log != _state(follower[:common], min(known, common)):
        yield f"it fetches from {log}, and {common} records are common"
    elif answer.error is not ErrorCode.NONE or (answer.end_offset, answer.high_watermark) != (len(leader), high):
        yield f"it is answered {answer}"
    copied = attrs.evolve(log, end_offset=of_leader.end_offset, epochs=_starts(leader))
    start = draws.number(0, high)
    told = FetchAnswer(high_watermark=Offset(high), start_offset=Offset(start), end_offset=Offset(len(leader)))
    if after_answer(copied, told, CURRENT) != _state(leader, high, start) and (start < len(leader) or not leader):
        yield f"after a copy it is {after_answer(copied, told, CURRENT)}, the leader starts at {start}"
    asking = _state(follower, known)
    wanted_step = FirstStep.ASK_EPOCH_END if follower else FirstStep.CUT_TO_HIGH_WATERMARK
    if first_step(asking, _ASKING) is not wanted_step:
        yield f"its first step is {first_step(asking, _ASKING)}"
    is_complete = not follower
    for _ in range(ROUNDS_MAX):
        if is_complete:
            break
        error, end = answer_epoch_end(role, of_leader, latest_epoch(asking.epochs), LeaderEpoch(epoch), _ASKING)
        if error is not ErrorCode.NONE:
            yield f"the leader refuses with {error}"
        cut = cut_for(asking, end, _ASKING)
        asking, is_complete = truncated(asking, cut.end_offset, _ASKING), cut.complete
    if asking.end_offset > common and is_complete and follower[:1] == leader[:1]:
        yield f"asked for it keeps {asking.end_offset}, and {common} records are common"
    if asking.epochs != _starts(follower[: asking.end_offset]) or asking.high_watermark > asking.end_offset:
        yield f"asked for it is {asking}"


def _asked(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Yield where an epoch is answered for that the leader cannot answer for, or none where it can."""
    log, believed = _state(leader, 0), LeaderEpoch(draws.one((-1, epoch - 1, epoch, epoch + 1)))
    follows = FollowerState(
        broker=_ONE, leader=_TWO, leader_epoch=LeaderEpoch(epoch), partition_epoch=PartitionEpoch(0)
    )
    for role, refusal in ((_leading(epoch, leader), ErrorCode.NONE), (follows, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        wanted = {epoch - 1: ErrorCode.FENCED_LEADER_EPOCH, epoch + 1: ErrorCode.UNKNOWN_LEADER_EPOCH}
        error, end = answer_epoch_end(role, log, LeaderEpoch(epoch), believed, CURRENT)
        expected = wanted.get(believed, refusal) if believed >= 0 else refusal
        if error is not expected or end != EpochEnd():
            yield f"who believes in {believed} is answered {error} {end}"
    by_epoch = attrs.evolve(CURRENT, truncation=Truncation.BY_LEADER_EPOCH)
    asked = LeaderEpoch(draws.number(0, epoch))
    _, newer = answer_epoch_end(_leading(epoch, leader), log, asked, UNKNOWN_EPOCH, CURRENT)
    _, older = answer_epoch_end(_leading(epoch, leader), log, asked, UNKNOWN_EPOCH, by_epoch)
    if older != EpochEnd(UNKNOWN_EPOCH, newer.end_offset):
        yield f"by KIP-101 it is answered {older}"
    own, high = _state(follower, len(follower) // 2), len(follower) // 2
    cut = cut_for(own, older, by_epoch)
    bound = high if older.end_offset < 0 else min(older.end_offset, len(follower))
    if (cut.end_offset, cut.complete) != (bound, True):
        yield f"by KIP-101 it is cut by {cut} for {older}"
    for current in (epoch, epoch + 1):
        parks = on_fenced(LeaderEpoch(epoch), LeaderEpoch(current)) is FencedReaction.PARK
        if parks != (current == epoch):
            yield f"in {current} it parks: {parks}, fenced in {epoch}"
    sent, wants, parked = Offset(draws.number(0, 2)), Offset(draws.number(0, 2)), draws.is_one_in(3)
    if may_apply(sent, wants, parked=parked) != (sent == wants and not parked):
        yield f"an answer for {sent} applies where {wants} is wanted, parked {parked}"


def _shortened(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Yield where a log that was cut, raised or begun anew is not what its records are."""
    high = draws.number(0, len(leader))
    start = draws.number(0, high)
    log = _state(leader, high, start) if start < len(leader) else _state(leader, high)
    start = log.start_offset
    place = draws.number(start, len(leader) + 2)
    rest = leader[:place]
    if truncated(log, Offset(place), CURRENT) != _state(rest, min(high, len(rest)), start) and place > start:
        yield f"{log} cut to {place} is {truncated(log, Offset(place), CURRENT)}"
    idle = attrs.evolve(log, epochs=(*log.epochs, EpochStart(LeaderEpoch(epoch), log.end_offset)))
    for trims, epochs in ((True, log.epochs), (False, idle.epochs)):
        rules = attrs.evolve(CURRENT, epoch_cache_always_trimmed=trims)
        if truncated(idle, log.end_offset, rules).epochs != epochs:
            yield f"an epoch without records: {truncated(idle, log.end_offset, rules)}"
    raised = draws.number(0, high)
    if raised < len(leader) and start_raised(log, Offset(raised)) != _state(leader, high, max(start, raised)):
        yield f"{log} raised to {raised} is {start_raised(log, Offset(raised))}"
    anew = draws.number(0, len(leader) + 3)
    for follows, wanted in ((True, anew), (False, high)):
        rules = attrs.evolve(CURRENT, high_watermark_follows_full_truncation=follows)
        if started_anew(log, Offset(anew), rules) != LogState(Offset(anew), Offset(anew), Offset(wanted)):
            yield f"begun anew at {anew} it is {started_anew(log, Offset(anew), rules)}"


def _out_of_range(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Yield where a follower without a place in the leader's log does not go to the nearest one."""
    first = draws.number(0, 6)
    last = first + draws.number(0, 6)
    told = out_of_range(_state(follower, 0), Offset(first), Offset(last))
    own = len(follower)
    nearest = min(max(own, first), last)
    if told.fetch_offset != nearest:
        yield f"between {first} and {last} it fetches at {told.fetch_offset}"
    if told.cut_to != (last if last < own else None) or told.starts_anew != (own < first):
        yield f"between {first} and {last} it does {told}"


def _position(draws: Draws, leader: list[int], follower: list[int], epoch: int) -> Iterator[str]:
    """Let a consumer that has read one log go on in the other."""
    read = draws.number(0, len(follower))
    position = Position(Offset(read), LeaderEpoch(follower[read - 1]) if read else UNKNOWN_EPOCH)
    end = end_offset_for(_starts(leader), position.epoch, Offset(len(leader)), CURRENT)
    told = check_position(position, end)
    is_there = leader[:read] == follower[:read]
    knows = bool(leader) and position.epoch <= leader[-1]
    if is_there and told.check is not PositionCheck.STANDS:
        yield f"who read {read} is told {told}, and all of them are there"
    if told.check is PositionCheck.STANDS and told.position != position:
        yield f"who may go on from {position} goes on from {told.position}"
    if not is_there and position.epoch in leader and told.check is not PositionCheck.CUT:
        yield f"who read {read} is told {told}, and not all are there"
    if told.check is PositionCheck.CUT and (
        told.position.offset != sum(each <= position.epoch for each in leader) or told.position.epoch != end.epoch
    ):
        yield f"who read {read} goes on at {told.position}"
    if (told.check is PositionCheck.LOST) != (read > 0 and not knows) or (
        told.check is PositionCheck.LOST and told.position != Position(Offset(0))
    ):
        yield f"who read {read} up to epoch {position.epoch} is told {told}"


CHECKS: Final = (_cache, _converged, _asked, _shortened, _out_of_range, _position)


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__.strip("_"))
@given(draws=DRAWS)
def test_the_records_bear_out(check: Callable[..., Iterator[str]], draws: Draws) -> None:
    logs, epoch = _histories(draws)
    leader, follower = draws.some(logs, 2)[:2]
    assert [*check(draws, leader, follower, epoch)] == [], (leader, follower, epoch)
