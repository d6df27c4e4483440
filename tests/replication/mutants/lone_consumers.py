"""Send a consumer group's coordinator heartbeats of every kind, compare with a reference, and read its records back.

What it decides: members, their heartbeats, topics that grow, and time, from a seed. Members own what they were told,
give back some of it late, and now and then say a wrong epoch, id or instance.

Constraints: after each step the records that change the group are applied to the group before, and to a group that was
read from all records so far; both have to be the group.

Source: ours; the reference's source is in `reference_consumer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.consumer import (
    ConsumerCoordinator,
    ConsumerGroup,
    ConsumerGroupHeartbeatRequest,
    GroupContext,
    new_group,
)
from broker.group.consumer.records import ConsumerGroupRecord, TopicIds, applied, changes, read_consumer_key
from broker.group.consumer.target import ConsumerOptions
from broker.group.ids import random_uuid
from broker.group.members import InstanceId, MemberId
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.reference_consumer import ReferenceConsumerGroup

GROUPS_A_RUN: Final = 3
STEP_COUNT: Final = 60
_STREAM: Final = 25
_TOPICS: Final = ("t", "u", "v")
_IDS: Final = TopicIds({topic: topic.encode() * 16 for topic in _TOPICS})
_INSTANCES: Final = (None, None, None, InstanceId("i1"), InstanceId("i2"))
_SPARES_SINCE: Final = Release("4.3")
"""The first release that does not compute every target at once."""
_RELEASES: Final = (NEWEST, NEWEST, NEWEST, Release("4.2"), Release("4.1"), Release("4.0"))


@attrs.frozen
class _Dealer:
    """Deal the partitions of each topic to its subscribers, from another one on for each assignor."""

    name: str
    first: int

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the partitions of each member."""
        shares: dict[MemberId, set[TopicPartition]] = {each.member_id: set() for each in members}
        for topic, count in sorted(partition_counts.items()):
            readers = sorted(each.member_id for each in members if topic in each.subscribed_topics)
            for partition in range(count):
                reader = readers[(partition + self.first + len(members)) % len(readers)]
                shares[reader].add(TopicPartition(topic, PartitionId(partition)))
        return {name: frozenset(share) for name, share in shares.items()}


_ASSIGNORS: Final = (_Dealer("one", 0), _Dealer("two", 1), _Dealer("three", 2))


def consumers_noticed(seed: int) -> str:
    """Return where a coordinator first differs from the reference, "" if it nowhere does."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(GROUPS_A_RUN)) if told), "")


class _Life:
    """Run one group through its heartbeats."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        release, seed = draws.one(_RELEASES), draws.number(0, 10**6)
        self._counts = {topic: draws.number(1, 3) for topic in _TOPICS}
        size_max, session_ms = draws.one((2, 100)), draws.one((45_000, 50_000))
        options = ConsumerOptions(size_max=size_max, session_timeout_ms=DurationMs(session_ms), release=release)
        interval_ms = 1_000 if release >= _SPARES_SINCE else 0
        if draws.is_one_in(2):
            given = {"group.consumer.max.size": size_max, "group.consumer.session.timeout.ms": session_ms}
            if interval_ms:
                interval_ms = given["group.consumer.assignment.interval.ms"] = draws.one((0, 1, 100, 700, 5_000))
            options = ConsumerOptions.of(Settings.of(Scope.BROKER, given, release=release))
        self._context = GroupContext(options=options, assignors=_ASSIGNORS, topics=self._counts)
        group = new_group("g", release)
        self._coordinator = ConsumerCoordinator(group, self._context, SplitMix64(seed))
        self._entropy = SplitMix64(seed)
        self._reference = ReferenceConsumerGroup(
            release=release,
            assignors=_ASSIGNORS,
            counts=self._counts,
            size_max=size_max,
            session_ms=session_ms,
            interval_ms=interval_ms,
        )
        self._new = self._kept = self._read = group
        self._log: list[ConsumerGroupRecord] = []
        self._now_ms = 1_000
        self._owned: dict[str, frozenset[TopicPartition]] = {}

    def run(self) -> str:
        """Send heartbeats until the steps are over or the two differ."""
        for _ in range(STEP_COUNT):
            self._now_ms += self._draws.one((0, 100, 700, 3_000, 20_000))
            self._reference.pass_to(self._now_ms)
            told = self._advanced() or self._beat() or self._commit() or self._moved()
            if told:
                return told
        return self._cleaned()

    def _advanced(self) -> str:
        """Let what is due happen; now and then that is left to the heartbeat that comes next."""
        if self._draws.is_one_in(3):
            return ""
        self._coordinator.advance(TimeMs(self._now_ms))
        return self._compared("time")

    def _moved(self) -> str:
        """Let another broker coordinate the group now and then: it knows the group, and waits for all anew."""
        if not self._draws.is_one_in(20):
            return ""
        self._coordinator = ConsumerCoordinator(self._coordinator.group, self._context, self._coordinator.entropy)
        self._coordinator.loaded(TimeMs(self._now_ms))
        self._reference.move_away(self._now_ms)
        return self._compared("another broker took over")

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        draws, known = self._draws, self._reference.members
        name = draws.one(["", "", *(f"m{number}" for number in range(3)), *known, *known])
        one = known.get(name)
        instance = (None if one is None or one.instance is None else InstanceId(one.instance)) if one else None
        epoch = one.epoch if one is not None and not draws.is_one_in(12) else 0
        if one is None:
            instance = draws.one(_INSTANCES)
        away = [each for each in known.values() if each.instance is not None and each.epoch == -2]
        back = draws.one(away) if one is None and away and draws.is_one_in(2) else None
        if back is not None:
            instance = InstanceId(str(back.instance))
        if one is not None and draws.is_one_in(8):
            epoch = draws.one((one.former_epoch, one.former_epoch, one.epoch + 1, one.epoch - 1))
        if draws.is_one_in(8):
            epoch = draws.one((-1, -2, -2, -3 if draws.is_one_in(4) else -1))
        if draws.is_one_in(20):
            instance = draws.one((*_INSTANCES, InstanceId("")))
        is_full = epoch == 0 or draws.is_one_in(5)
        owned = self._owned.get(name, frozenset())
        says = frozenset(draws.some(sorted(owned))) if draws.is_one_in(4) else owned
        odd = draws.number(0, 30)
        """Which field a request lacks that should be full, or has too much in."""
        if epoch == 0:
            says = frozenset({TopicPartition("t", PartitionId(0))}) if odd == 2 else frozenset()
        topics = self._topics(one is None) if back is None or draws.is_one_in(4) else back.topics
        return ConsumerGroupHeartbeatRequest(
            member_id=MemberId(name),
            epoch=epoch,
            instance_id=instance,
            client_id=draws.one(("d", "c" * 130)) if draws.is_one_in(9) else "c",
            rack=draws.one((None, None, "r", "" if draws.is_one_in(9) else None)),
            rebalance_timeout_ms=DurationMs(draws.one((8_000, 60_000))) if is_full and odd != 1 else None,
            subscribed_topics=topics if is_full or draws.is_one_in(9) else None,
            assignor=draws.one((None, "one", "two", "three", "none" if draws.is_one_in(9) else None)),
            owned=says if odd != 3 and (is_full or draws.is_one_in(2)) else None,
        )

    def _topics(self, is_new: bool) -> frozenset[str]:
        if not is_new and not self._draws.is_one_in(4):
            return frozenset({"t", "u"})
        return frozenset(self._draws.some((*_TOPICS, "unknown"), 0 if self._draws.is_one_in(9) else 1))

    def _beat(self) -> str:
        draws, reference = self._draws, self._reference
        if draws.is_one_in(15):
            topic = draws.one(_TOPICS)
            self._counts[topic] += 1
        asked = self._request()
        new_id = str(asked.member_id) or random_uuid(self._entropy)
        error = reference.refusal(asked)
        told = self._coordinator.handle(asked, TimeMs(self._now_ms))
        answer = told.answer
        if answer.error is not error:
            return f"{asked} is answered {answer.error}, by the reference {error}"
        if error is not ErrorCode.NONE:
            is_same = (answer.member_id, answer.epoch, answer.assignment) == (asked.member_id, asked.epoch, None)
            return self._compared(str(asked)) if is_same else f"{asked} is refused with {answer}"
        name = str(asked.member_id) if asked.epoch < 0 else new_id
        epoch, share = reference.beat(asked, name, self._now_ms)
        if (answer.member_id, answer.epoch, answer.assignment) != (name, epoch, share):
            return f"{asked} is answered {answer}, by the reference {epoch}, {share}"
        if epoch >= 0 and answer.heartbeat_interval_ms != self._context.options.heartbeat_interval_ms:
            return f"{asked} is told to come back in {answer.heartbeat_interval_ms} ms"
        if share is not None and not draws.is_one_in(4):
            self._owned[name] = share
        elif name in reference.members and not draws.is_one_in(3):
            self._owned[name] = frozenset(reference.members[name].holds)
        if told.group is not self._coordinator.group:
            return f"{asked} is answered of another group than there is"
        return self._compared(str(asked))

    def _commit(self) -> str:
        draws, reference = self._draws, self._reference
        name = draws.one(["", "m0", *reference.members])
        one = reference.members.get(name)
        epoch = draws.one((-1, 0, *([one.epoch, one.epoch - 1, one.former_epoch, one.epoch + 1] if one else [])))
        every = [TopicPartition(topic, PartitionId(each)) for topic in ("t", "u") for each in range(2)]
        partitions = list(draws.some(sorted(one.holds) if one and one.holds and draws.is_one_in(2) else every))
        told = self._coordinator.group.commit_error(MemberId(name), epoch, partitions)
        wanted = reference.commit_refusal(name, epoch, partitions)
        return (
            "" if told is wanted else f"a commit of {name} in {epoch} of {partitions} is answered {told}, not {wanted}"
        )

    def _compared(self, what: str) -> str:
        group, reference = self._coordinator.group, self._reference
        group.check_invariants()
        ours = {
            name: (
                *(each.instance_id, each.client_id, each.rack, each.assignor, each.subscribed_topics),
                *(each.rebalance_timeout_ms, each.state.name, each.epoch, each.previous_epoch),
                *(set(each.assigned), set(each.revoking), dict(each.assignment_epochs)),
            )
            for name, each in group.members.items()
        }
        theirs: dict[Any, Any] = {
            name: (
                *(each.instance, each.client, each.rack, each.assignor, each.topics),
                *(each.patience_ms, each.state, each.epoch, each.former_epoch),
                *(each.holds, each.owes, each.since),
            )
            for name, each in reference.members.items()
        }
        if ours != theirs:
            return f"after {what}: members {ours}, by the reference {theirs}"
        held = (group.epoch, group.target_epoch, dict(group.topics), group.target_ms)
        wanted = (reference.epoch, reference.target_epoch, reference.read, reference.target_ms)
        if held != wanted or {name: set(share) for name, share in group.target.items()} != reference.target:
            return f"after {what}: {held} and target {group.target}, by the reference {wanted}"
        if group.state.name != reference.state:
            return f"after {what}: the group is {group.state.name}, by the reference {reference.state}"
        departed = [(each.member_id, why.value) for each, why in self._coordinator.take_departed()]
        known, reference.departed = reference.departed, []
        if departed != known:
            return f"after {what}: {departed} have left, by the reference {known}"
        due = self._coordinator.next_ms()
        if due != reference.next_ms:
            return f"after {what}: due at {due}, by the reference {reference.next_ms}"
        return self._recorded(group, what)

    def _recorded(self, group: ConsumerGroup, what: str) -> str:
        """Return where the records of a step do not lead to the group."""
        records = changes(self._kept, group, _IDS)
        if (not records) != (group == self._kept):
            return f"after {what}: {len(records)} records change {self._kept} into {group}"
        stepped = self._kept
        for record in records:
            if read_consumer_key(record.key.to_bytes()) != record.key:
                return f"the key {record.key} is read as {read_consumer_key(record.key.to_bytes())}"
            stepped, self._read = applied(stepped, record, _IDS), applied(self._read, record, _IDS)
        self._kept = group
        self._log += records
        if _of(stepped) != _of(group) or _of(self._read) != _of(group):
            return f"after {what}: read back is {stepped}, was {group}"
        return ""

    def _cleaned(self) -> str:
        """Return where the log is read otherwise after records have been cleaned that a later one replaces."""
        last = {record.key: place for place, record in enumerate(self._log)}
        kept_one_in = self._draws.one((2, 10**6))
        read = self._new
        for place, record in enumerate(self._log):
            if last[record.key] == place or self._draws.is_one_in(kept_one_in):
                read = applied(read, record, _IDS)
        return "" if _of(read) == _of(self._kept) else f"cleaned, the log is read as {read}, and was {self._kept}"


def _of(group: ConsumerGroup) -> tuple[Any, ...]:
    """Return what a record keeps of a group; an empty share is as good as none."""
    target = {name: share for name, share in group.target.items() if share}
    return group.epoch, group.target_epoch, group.target_ms, dict(group.members), target, dict(group.topics)
