"""Say what gives the partitions of one cluster leaders and replicas again: words, commands and files of elections.

Order: brokers that must return to partitions without a leader; the unclean election that does without them, and what
it loses; brokers that look dead, which come back or are drained; last the preferred election, which loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import attrs

from placement.balance.out_of_sync import brokers_in_words
from placement.formats.plan_files import election_text
from spark_analysis.report.commands import Commands, commands_of
from spark_analysis.report.figures import count, plural
from spark_analysis.report.model import ClusterDetail, Report
from spark_analysis.report.rows import RecoveryStep
from spark_analysis.report.states import is_uneven

__all__ = ("NextStep", "recovery_steps")

RETURN: Final = "return"
UNCLEAN: Final = "unclean-election"
DOWN: Final = "down"
PREFERRED: Final = "preferred-election"
LISTED_MAX: Final = 100
_NAMED_MAX: Final = 3
_ELECTIONS: Final = {UNCLEAN: "unclean", PREFERRED: "preferred"}
_ROLES: Final = {
    "in-sync": ("sole in-sync replica", "in-sync replicas"),
    "eligible": ("sole eligible replica", "eligible replicas"),
    "last known leader": ("last known leader", "last known leaders"),
}


@attrs.frozen
class NextStep:
    """Hold one thing to do with a cluster: its kind, a sentence, and its command, None where there is none to show."""

    step: str
    words: str
    command: str | None = None


def recovery_steps(detail: ClusterDetail, commands: Commands | None) -> tuple[NextStep, ...]:
    """Return the steps of a cluster but its preferred election, in the order in which they are to be looked at."""
    return tuple(_steps(detail, commands))


def _steps(detail: ClusterDetail, commands: Commands | None) -> Iterator[NextStep]:
    returning = _of(detail, RETURN)
    if returning:
        looks_dead = {broker for step in _of(detail, DOWN) for broker in step.broker_ids}
        yield NextStep(RETURN, return_in_words(returning, looks_dead))
    for step in _of(detail, UNCLEAN):
        yield NextStep(UNCLEAN, _unclean_in_words(step, returning), _election(commands, UNCLEAN))
    if returning and not _of(detail, UNCLEAN):
        yield NextStep(UNCLEAN, "no other replica is live: if these brokers are gone for good, so are the records")
    down = _of(detail, DOWN)
    if down:
        brokers = sorted(broker for step in down for broker in step.broker_ids)
        # A partition without a leader copies nothing, so that a drain waits for it.
        stays = returning and not _of(detail, UNCLEAN)
        refused = None if returning else down[0].refused
        can_drain = not stays and _left_is_enough(detail, brokers) and refused is None
        line = commands.drain(brokers, down[0].goal or "drain") if can_drain and commands is not None else None
        why = "" if refused is None else f"; a drain is refused as things stand ({refused})"
        yield NextStep(DOWN, _down_in_words(down, can_drain, after=bool(returning)) + why, line)


def preferred_step(detail: ClusterDetail, commands: Commands | None, tolerance: float) -> tuple[NextStep | None, bool]:
    """Return the preferred election, None if it changes nothing, and whether it evens out leaders that are uneven."""
    for step in _of(detail, PREFERRED):
        before, after = step.leader_moves_before, step.leader_moves_after
        falls = before is not None and after is not None and after < before
        gain = f" (leaders to move {count(before)} → {count(after)})" if falls else ""
        elect = f"elect the preferred leaders of {plural(step.partition_count, 'partition')}"
        words = f"{elect}, which copies nothing{gain}"
        evens = falls and is_uneven(detail.row.over_brokers.leaders, tolerance)
        return NextStep(PREFERRED, words, _election(commands, PREFERRED)), evens
    return None, False


def return_in_words(steps: Sequence[RecoveryStep], down: Collection[int]) -> str:
    """Return which brokers must return to partitions without a leader, and of how many partitions each is the last.

    Of several brokers those that are not `down` are named as up, with a replica that is not.

    >>> one = RecoveryStep(broker_ids=(34,), role="in-sync", partition_count=2)
    >>> either = RecoveryStep(broker_ids=(1, 4), role="eligible", partition_count=3)
    >>> return_in_words([one, either], down={1, 4, 34})
    'broker 34 must return (sole in-sync replica of 2 partitions); one of brokers 1 and 4 must return (eligible \
replicas of 3 partitions)'
    """
    alone = [step for step in steps if len(step.broker_ids) == 1]
    needed = {broker for step in alone for broker in step.broker_ids}
    several = [step for step in steps if len(step.broker_ids) > 1 and not needed & set(step.broker_ids)]
    served = sum(step.partition_count for step in steps if len(step.broker_ids) > 1 and step not in several)
    said = [_one_in_words(step, down) for step in (*alone, *several)[:_NAMED_MAX]]
    if len(alone) + len(several) > _NAMED_MAX:
        said.append(f"and {plural(len(alone) + len(several) - _NAMED_MAX, 'more set')} of brokers")
    if served:
        said.append(f"with that, {plural(served, 'more partition')} {'has' if served == 1 else 'have'} a leader")
    unknown = sum(step.partition_count for step in steps if not step.broker_ids)
    if unknown:
        said.append(f"the input does not show who may lead {plural(unknown, 'partition')}")
    return "; ".join(said)


def _one_in_words(step: RecoveryStep, down: Collection[int]) -> str:
    one, many = _ROLES[step.role]
    partitions = plural(step.partition_count, "partition")
    if len(step.broker_ids) > 1:
        up = [broker for broker in step.broker_ids if broker not in down]
        verb, whose, its = ("are", "their replicas", "their") if len(up) > 1 else ("is", "its replica", "its")
        look = f"{verb} not: look at {its} log directories"
        if len(up) == len(step.broker_ids):
            return f"{brokers_in_words(up)} {verb} up, but {whose}, {many} of {partitions}, {look}"
        besides = f"; {brokers_in_words(up)} {verb} up, but {whose} {look}" if up else ""
        return f"one of {brokers_in_words(step.broker_ids)} must return ({many} of {partitions}{besides})"
    (broker,) = step.broker_ids
    if step.is_up:
        return f"broker {broker} is up, but its replica, {one} of {partitions}, is not: look at its log directories"
    return f"broker {broker} must return ({one} of {partitions})"


def _unclean_in_words(step: RecoveryStep, returning: Sequence[RecoveryStep]) -> str:
    lacking = sorted({broker for each in returning for broker in each.broker_ids})
    whom = brokers_in_words(lacking) if lacking else "the last leader"
    left = sum(each.partition_count for each in returning) - step.partition_count
    none = f"; of {plural(left, 'partition')} no other replica is live" if left else ""
    return (
        f"or give up the records that only {whom} {'have' if len(lacking) > 1 else 'has'} (how many is not known) and "
        f"let {brokers_in_words(step.broker_ids)} lead {plural(step.partition_count, 'partition')}{none}"
    )


def _down_in_words(down: Sequence[RecoveryStep], can_drain: bool, *, after: bool) -> str:
    """Return which brokers look dead, and what to do; `after` an unclean election a drain may begin."""
    named = " and ".join(f"{brokers_in_words(step.broker_ids)} ({step.role})" for step in down)
    held = plural(sum(step.partition_count for step in down), "partition")
    several = sum(len(step.broker_ids) for step in down) > 1
    them, verb, gone = ("them", "hold", "they are") if several else ("it", "holds", "it is")
    before = "hold the election, describe the topics again and " if after else ""
    drain = f", or if {gone} gone for good, {before}drain {them}"
    return f"{named} {verb} replicas of {held}: bring {them} back{drain if can_drain else ''}"


def _left_is_enough(detail: ClusterDetail, brokers: Sequence[int]) -> bool:
    """Return whether as many brokers are left as a partition has replicas in the mean."""
    facts = detail.row.facts
    left = len(detail.brokers) - len(brokers)
    return bool(facts.partition_count) and left * facts.partition_count >= (facts.replica_count or 0)


def _election(commands: Commands | None, step: str) -> str | None:
    return None if commands is None else commands.election(_ELECTIONS[step])


def _of(detail: ClusterDetail, step: str) -> tuple[RecoveryStep, ...]:
    return tuple(each for each in detail.advice.recovery if each.step == step)


def must_return(detail: ClusterDetail) -> list[int]:
    """Return the brokers that alone give some partition its leader without loss, ascending."""
    return sorted({step.broker_ids[0] for step in _of(detail, RETURN) if len(step.broker_ids) == 1})


def recovery_json(detail: ClusterDetail) -> list[dict[str, Any]]:
    """Return the steps of a cluster for programs, each with its first `LISTED_MAX` partitions."""
    return [
        {
            "step": step.step,
            "broker_ids": list(step.broker_ids),
            "role": step.role,
            "is_up": step.is_up,
            "partition_count": step.partition_count,
            "partitions": [f"{topic}-{number}" for topic, number in _named(step)[:LISTED_MAX]],
            "leader_moves_before": step.leader_moves_before,
            "leader_moves_after": step.leader_moves_after,
        }
        for step in detail.advice.recovery
    ]


def _named(step: RecoveryStep) -> list[tuple[str, int]]:
    return list(zip(step.topics, step.partitions, strict=True))


def election_files(report: Report) -> dict[str, str]:
    """Return the files of the elections that the report names: path in its folder, and text."""
    found = {}
    for detail in report.details:
        commands = commands_of(report, detail.row.facts)
        for step in detail.advice.recovery:
            if commands is not None and step.step in _ELECTIONS:
                found[commands.election_file(_ELECTIONS[step.step])] = election_text(_named(step))
    return found
