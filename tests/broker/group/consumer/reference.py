"""Reference of a consumer group: the group after each heartbeat and after time has passed, and the answers.

It shares only the messages with `broker.group.consumer`. A target is computed by the assignor that both are given.

Source: GroupMetadataManager (consumerGroupHeartbeat, consumerGroupLeave, scheduleConsumerGroup*),
CurrentAssignmentBuilder and TargetAssignmentBuilder of Kafka 4.0 to 4.3, as facts; KIP-848, KIP-1251, KIP-1263.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.assignors import ServerAssignor, Subscriber
from broker.group.consumer.member import ConsumerGroupHeartbeatRequest
from broker.group.members import InstanceId, MemberId
from broker.ids import TopicPartition
from broker.java.string_hash import java_map_order
from broker.releases import Release

STABLE, UNREVOKED, UNRELEASED = "STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS"
_V41, _V42, _V43 = (Release(name) for name in ("4.1", "4.2", "4.3"))
NONE: Final = ErrorCode.NONE


@attrs.define
class Reader:
    """Hold one member: what it said of itself, where it is, and what it holds since which epoch."""

    instance: str | None = None
    client: str = ""
    rack: str | None = None
    assignor: str | None = None
    topics: frozenset[str] = frozenset()
    patience_ms: int = 300_000
    state: str = STABLE
    epoch: int = 0
    former_epoch: int = -1
    holds: set[TopicPartition] = attrs.field(factory=set)
    owes: set[TopicPartition] = attrs.field(factory=set)
    since: dict[TopicPartition, int] = attrs.field(factory=dict)


@attrs.define
class ReferenceConsumerGroup:
    """Take heartbeats and time."""

    release: Release
    assignors: tuple[ServerAssignor, ...]
    counts: dict[str, int]
    size_max: int
    session_ms: int
    interval_ms: int
    epoch: int = attrs.field(init=False)
    target_epoch: int = attrs.field(init=False)
    members: dict[str, Reader] = attrs.field(factory=dict)
    target: dict[str, set[TopicPartition]] = attrs.field(factory=dict)
    read: dict[str, int] = attrs.field(factory=dict)
    target_ms: int | None = None
    departed: list[tuple[str, str]] = attrs.field(factory=list)
    _due: dict[tuple[str, str], tuple[int, int, Callable[[], None]]] = attrs.field(factory=dict)
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        self.epoch = self.target_epoch = int(self.release >= _V43)

    @property
    def state(self) -> str:
        """Return the group's state, which follows from its members and epochs."""
        arrived = [(one.state, one.epoch) == (STABLE, self.target_epoch) for one in self.members.values()]
        if not arrived:
            return "EMPTY"
        return "ASSIGNING" if self.target_epoch < self.epoch else "STABLE" if all(arrived) else "RECONCILING"

    def pass_to(self, now_ms: int) -> None:
        """Let time pass: members that were silent, or kept what they owe, are gone."""
        while self._due and min(due_ms for due_ms, _, _ in self._due.values()) <= now_ms:
            key = min(self._due, key=lambda each: self._due[each][:2])
            self._due.pop(key)[2]()

    @property
    def next_ms(self) -> int | None:
        """Return when something is due next."""
        return min((due_ms for due_ms, _, _ in self._due.values()), default=None)

    def move_away(self, now_ms: int) -> None:
        """Go on at another broker, which knows the group and not since when it waits for whom."""
        self._due = {}
        for name in map(str, java_map_order(self.members)):
            self._wait_for(name, now_ms)
            if self.members[name].state == UNREVOKED:
                self._be_patient(name, now_ms)

    def _wait_for(self, name: str, now_ms: int) -> None:
        self._after("session", name, now_ms + self.session_ms, lambda: self._fence(name, "session timeout"))

    def _be_patient(self, name: str, now_ms: int) -> None:
        one = self.members[name]
        epoch = one.epoch
        self._after("patience", name, now_ms + one.patience_ms, lambda: self._lose_patience(name, epoch))

    def _after(self, what: str, name: str, at_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        self._due[what, name] = (at_ms, self._count, act)

    def _fence(self, name: str, why: str) -> None:
        if name in self.members:
            self.departed.append((name, why))
            self._drop(name)
        self._forget(name)

    def _drop(self, name: str) -> None:
        del self.members[name]
        self.target.pop(name, None)
        self.epoch += 1

    def _forget(self, name: str) -> None:
        self._due.pop(("session", name), None)
        self._due.pop(("patience", name), None)

    def _holder(self, instance: str | None) -> str | None:
        return next((name for name, each in self.members.items() if instance and each.instance == instance), None)

    def refusal(self, asked: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Return the first error that refuses a heartbeat."""
        name, epoch, instance = str(asked.member_id), asked.epoch, asked.instance_id
        joins, leaves = epoch == 0, epoch in (-1, -2)
        is_complete = asked.rebalance_timeout_ms is not None and asked.owned == frozenset() and asked.subscribed_topics
        holder, known = self._holder(instance), self.members.get(name)
        is_back = instance is not None and joins
        is_away = holder is not None and self.members[holder].epoch == -2
        causes = (
            (ErrorCode.INVALID_REQUEST, epoch < -2 or "" in (instance, asked.rack)),
            (ErrorCode.INVALID_REQUEST, joins and not is_complete),
            (ErrorCode.INVALID_REQUEST, not joins and not name),
            (ErrorCode.INVALID_REQUEST, epoch == -2 and instance is None),
            (ErrorCode.UNSUPPORTED_ASSIGNOR, asked.assignor not in (None, *(each.name for each in self.assignors))),
            (ErrorCode.GROUP_MAX_SIZE_REACHED, not leaves and known is None and len(self.members) >= self.size_max),
            (ErrorCode.UNRELEASED_INSTANCE_ID, is_back and holder is not None and not is_away),
            (NONE, is_back),
            (ErrorCode.UNKNOWN_MEMBER_ID, instance is not None and holder is None),
            (ErrorCode.FENCED_INSTANCE_ID, instance is not None and holder != name),
            (NONE, known is None and joins),
            (ErrorCode.UNKNOWN_MEMBER_ID, known is None),
        )
        error = next((code for code, holds in causes if holds), None)
        if error is not None or known is None:
            return error or NONE
        is_known_before = known.former_epoch == epoch < known.epoch
        has_given_back = asked.owned is not None and asked.owned <= known.holds
        allowed = leaves or epoch == known.epoch or (joins and self.release >= _V42)
        return NONE if allowed or (is_known_before and has_given_back) else ErrorCode.FENCED_MEMBER_EPOCH

    def beat(
        self, asked: ConsumerGroupHeartbeatRequest, name: str, now_ms: int
    ) -> tuple[int, frozenset[TopicPartition] | None]:
        """Take an accepted heartbeat of `name`; return the epoch, and the assignment if the response has it."""
        if asked.epoch == -1:
            self.departed.append((name, "left"))
            self._drop(name)
            self._forget(name)
            return -1, None
        if asked.epoch == -2:
            one = self.members[name]
            one.epoch, one.owes = -2, set()
            one.since = {each: 0 for each in one.since if each in one.holds}
            return -2, None
        before = self._enter(asked, name)
        one = self.members[name]
        was = (one.epoch, set(one.owes)) if before else None
        held = set(one.holds)
        has_changed = asked.subscribed_topics not in (None, one.topics)
        self._hear(one, asked)
        self._raise(has_changed)
        self._aim(now_ms)
        if has_changed or (one.state, one.epoch) != (STABLE, self.target_epoch):
            self._move(one, name, asked.owned, has_changed=has_changed)
        self._wait_for(name, now_ms)
        if one.state != UNREVOKED:
            self._due.pop(("patience", name), None)
        elif was is None or was != (one.epoch, one.owes):
            self._be_patient(name, now_ms)
        says_all = asked.epoch == 0 or None not in (asked.rebalance_timeout_ms, asked.subscribed_topics, asked.owned)
        return one.epoch, frozenset(one.holds) if says_all or one.holds != held else None

    def _lose_patience(self, name: str, epoch: int) -> None:
        if name in self.members and self.members[name].epoch == epoch:
            self._fence(name, "revocation timeout")

    def _enter(self, asked: ConsumerGroupHeartbeatRequest, name: str) -> bool:
        """Make the member if it is new, and return whether it was there; a static one takes its former place."""
        former = self._holder(asked.instance_id)
        was_there = name in self.members
        if former is not None and asked.epoch == 0:
            one = self.members.pop(former)
            one.epoch = one.former_epoch = 0
            self.members[name] = one
            if former in self.target:
                self.target[name] = self.target.pop(former)
            if former != name:
                self.departed.append((former, "replaced"))
        elif not was_there:
            self.members[name] = Reader()
        return was_there

    def _hear(self, one: Reader, asked: ConsumerGroupHeartbeatRequest) -> None:
        one.client = asked.client_id
        one.instance = asked.instance_id or one.instance
        one.rack = asked.rack or one.rack
        one.assignor = asked.assignor or one.assignor
        if asked.rebalance_timeout_ms is not None:
            one.patience_ms = asked.rebalance_timeout_ms
        if asked.subscribed_topics is not None:
            one.topics = asked.subscribed_topics

    def _raise(self, has_changed: bool) -> None:
        topics = {topic for one in self.members.values() for topic in one.topics}
        read = {topic: count for topic, count in self.counts.items() if topic in topics}
        if has_changed or read != self.read:
            self.read = read
            self.epoch += 1

    def _aim(self, now_ms: int) -> None:
        """Compute the target, unless the last one is too young (KIP-1263)."""
        is_young = bool(self.target_ms and self.interval_ms) and now_ms < (self.target_ms or 0) + self.interval_ms
        if self.epoch == self.target_epoch or is_young:
            return
        order = [str(name) for name in java_map_order(self.members)]
        asked_for = [each for name in order if (each := self.members[name].assignor) is not None]
        votes = Counter(asked_for)
        wanted = [str(name) for name in java_map_order(votes) if votes[str(name)] == max(votes.values())]
        by_name = {each.name: each for each in self.assignors}
        assignor = by_name[wanted[0]] if wanted else self.assignors[0]
        subscribers = [
            Subscriber(
                member_id=MemberId(name),
                instance_id=None if one.instance is None else InstanceId(one.instance),
                rack=one.rack,
                subscribed_topics=one.topics,
                target=frozenset(self.target.get(name, ())),
            )
            for name, one in ((name, self.members[name]) for name in order)
        ]
        shares = assignor.assign(subscribers, self.read)
        self.target = {name: set(shares.get(MemberId(name), ())) for name in self.members}
        self.target_epoch = self.epoch
        if self.release >= _V43:
            self.target_ms = now_ms

    def _move(self, one: Reader, name: str, owned: frozenset[TopicPartition] | None, *, has_changed: bool) -> None:
        """Bring a member one step nearer to the target: give back first, then take what is free."""
        follows = self.release >= _V42
        is_there = one.state == STABLE and one.epoch == self.target_epoch
        if is_there or (one.state == UNREVOKED and _keeps(owned, one.owes)):
            if follows and has_changed:
                self._unsubscribe(one, owned)
            return
        epoch = one.epoch + (one.state == UNREVOKED and not follows)
        wished = {each for each in self.target.get(name, ()) if not follows or each.topic in one.topics}
        surplus = one.holds - wished
        if surplus and _keeps(owned, surplus):
            self._put(one, UNREVOKED, epoch, one.holds & wished, surplus)
            return
        others = [each for each in self.members.values() if each is not one]
        taken = {each for other in others for each in other.holds | other.owes} | one.holds
        if self.release < _V41:
            taken |= one.owes
        free = (wished - one.holds) - taken
        is_all = free == wished - one.holds
        self._put(one, STABLE if is_all else UNRELEASED, self.target_epoch, (one.holds & wished) | free, set())
        if self.release >= _V43:
            one.since |= dict.fromkeys(free, self.target_epoch)

    def _unsubscribe(self, one: Reader, owned: frozenset[TopicPartition] | None) -> None:
        lost = {each for each in one.holds if each.topic not in one.topics}
        if lost:
            former, owes = one.former_epoch, one.owes | lost
            if _keeps(owned, owes):
                self._put(one, UNREVOKED, one.epoch, one.holds - lost, owes)
            else:
                self._put(one, one.state, one.epoch, one.holds - lost, one.owes)
            if self.release < _V43:
                one.former_epoch = former

    def _put(self, one: Reader, state: str, epoch: int, holds: set[TopicPartition], owes: set[TopicPartition]) -> None:
        one.state, one.former_epoch, one.epoch = state, one.epoch, epoch
        one.holds, one.owes = set(holds), set(owes)
        one.since = {each: since for each, since in one.since.items() if each in holds | owes}

    def commit_refusal(self, name: str, epoch: int, partitions: list[TopicPartition]) -> ErrorCode:
        """Return why a commit of offsets of these partitions is refused."""
        one = self.members.get(name)
        if one is None:
            return NONE if epoch < 0 and not self.members else ErrorCode.UNKNOWN_MEMBER_ID
        held = [one.since.get(each, one.epoch) <= epoch < one.epoch for each in partitions]
        is_known = epoch == one.epoch or (bool(held) and all(held))
        return NONE if is_known else ErrorCode.STALE_MEMBER_EPOCH


def _keeps(owned: frozenset[TopicPartition] | None, owed: set[TopicPartition]) -> bool:
    """Return whether a member may still read what it owes; who does not say what it owns may."""
    return owned is None or not owned.isdisjoint(owed)
