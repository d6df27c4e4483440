"""One broker against plain facts: every answer that it owes to brokers, clients and its controller, once, and no other.

Messages come sound or late, of any epoch, with or without an error, and now and then a disk fails. What the broker owes
is in `broker_facts`; the reasons of the rules are compared one by one in `tests/replication/rules`.

Source: Kafka's ReplicaManager, BrokerMetadataPublisher and AbstractFetcherThread, as facts; KIP-112, 320, 497, 858.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings

from broker.error_codes import ErrorCode
from broker.units import DurationMs, TimeMs
from log.storage.checkpoints import LEADER_EPOCH_FILE
from log.storage.faults import Fault, FaultKind
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    AlterPartition,
    AlterPartitionRetryDue,
    BrokerRegistrationResponse,
    CheckpointDue,
    Fetch,
    FetchDue,
    HeartbeatDue,
    LagCheckDue,
    ListOffsets,
    Message,
    MetadataFetch,
    MetadataFetchDue,
    RegistrationDue,
)
from replication.roles.outbox import Outbox
from replication.rules.high_watermark import leader_high_watermark
from replication.rules.settings import Moment
from tests.replication.roles.broker_clients import asked, expired, fetched, wrote
from tests.replication.roles.broker_events import altered, answered, began, heard, reminded
from tests.replication.roles.broker_facts import Part, Said, said
from tests.replication.roles.broker_world import EPOCH, SETTINGS, World
from tests.support.drawing import DRAWS, Draws

STEP_COUNT: Final = 120
_DISK_FAILS_ONE_IN: Final = 200
_FILES_THAT_FAIL: Final = ("*.log", f"*{LEADER_EPOCH_FILE}*")
"""A write fails at a batch, or as an epoch begins: with it, or as the metadata tell of it."""
_OF_CLIENTS: Final = (wrote, wrote, wrote, fetched, fetched, fetched, fetched, expired, asked, asked)
_STEPS: Final = (*_OF_CLIENTS, answered, answered, answered, answered, altered, altered, heard, heard, reminded)


def _lived(world: World) -> str:
    """Return what one life of a broker has against the facts."""
    told, parts = next(_begun(world), ""), list(world.parts.values())
    for _ in range(0 if told else STEP_COUNT):
        held = [each for each in parts if each.is_held]
        step = world.draws.one(_STEPS)
        part = world.draws.one(parts if step is heard or world.draws.is_one_in(4) else held or parts)
        if world.draws.is_one_in(_DISK_FAILS_ONE_IN):
            names = world.draws.one(_FILES_THAT_FAIL)
            world.disks.arm(Fault(f"disk-{part.number % 2}/{names}", FaultKind.NO_SPACE), lasts=True)
        before = str(part)
        due = step(world, part)
        told = "" if due is None else next(_differs(world, part, due), "") or next(_unknown(world), "")
        if told:
            return f"{world.last} to {before}: {told}"
    return told


def _begun(world: World) -> Iterator[str]:
    """Yield where a process does not begin with its registration and its timers."""
    out = Outbox()
    world.role.begin(out)
    timers = [
        (SETTINGS.answer_ms_max, RegistrationDue()),
        (SETTINGS.checkpoint_ms, CheckpointDue()),
        (DurationMs(SETTINGS.settings.lag_ms_max // 2), LagCheckDue()),
    ]
    if out.woken != timers or [type(each).__name__ for _, each in out.sent] != ["BrokerRegistration"]:
        yield f"it begins with {out.sent} and {out.woken}"
    world.tell(BrokerRegistrationResponse(EPOCH))
    world.question = 1
    world.timers.append((SETTINGS.heartbeat_ms, HeartbeatDue()))
    yield from _differs(world, world.parts[0], [world.asks_metadata(), world.heartbeat()])
    yield from _differs(world, world.parts[0], began(world))


def _differs(world: World, part: Part, due: list[Said]) -> Iterator[str]:
    """Add what a failed disk or a new high watermark owes, and yield where what was said is not what is due."""
    if world.disks.failed:
        for each in world.parts.values():
            if each.is_open and world.disks.failed == f"disk-{each.number % 2}":
                due += each.ended(ErrorCode.KAFKA_STORAGE_ERROR)
                each.is_lost, each.role = True, ""
        due.append(world.heartbeat())
    elif part.is_led:
        role = world.role.roles[part.number]
        assert isinstance(role, LeaderRole)
        pending = role.state.pending
        counted = max(len(role.state.isr), 0 if pending is None else len(pending.isr))
        due += part.committed(world.high_watermark(part), counted)
        if world.advances:
            log, moment = world.logs[part.number].state, Moment(TimeMs(world.now_ms), world.role.image.brokers)
            high = leader_high_watermark(role.state, log, moment, SETTINGS.settings)
            if log.high_watermark != high:
                yield f"up to {log.high_watermark} is committed, and {high} is due"
    if not world.disks.failed and Counter(world.out.woken) != Counter((*world.timers, *_timers(world))):
        yield f"its timers are {world.out.woken}, due are {[*world.timers, *_timers(world)]}"
    # A leader may have asked for another ISR before its disk failed, which it leads no more.
    spared = AlterPartition if world.disks.failed else ()
    told = Counter(said(to, each) for to, each in world.out.sent if not isinstance(each, spared))
    wanted = Counter((*due, *_alters(world)))
    if told != wanted:
        yield f"it says {list((told - wanted).elements())}, due is {list((wanted - told).elements())}"
    for each in world.parts.values():
        if each.number in world.dropped and (each.is_lost or each.is_unusable):
            yield f"it deletes the log of {each}"


def _timers(world: World) -> Iterator[tuple[DurationMs, Message]]:
    """Yield the timer of each request that was sent, after which it counts as lost."""
    for _, each in world.out.sent:
        if isinstance(each, Fetch):
            yield DurationMs(SETTINGS.fetch_wait_ms + SETTINGS.answer_ms_max), FetchDue(each.partition, each.number)
        elif isinstance(each, ListOffsets):
            yield SETTINGS.answer_ms_max, FetchDue(each.partition, each.number)
        elif isinstance(each, AlterPartition):
            yield SETTINGS.answer_ms_max, AlterPartitionRetryDue(each.partition, each.request)
        elif isinstance(each, MetadataFetch):
            yield SETTINGS.answer_ms_max, MetadataFetchDue(each.number)


def _alters(world: World) -> Iterator[Said]:
    """Yield what leaders have to ask the controller for: what they wait for since this step, or ask again."""
    for partition in world.parts:
        pending = world.pending(partition)
        is_again = pending is not None and world.last == AlterPartitionRetryDue(partition, pending)
        if pending is not None and (is_again or pending is not world.pending_before.get(partition)):
            yield Said(CONTROLLER, "AlterPartition", partition, (pending,))


def _unknown(world: World) -> Iterator[str]:
    """Yield where the broker or its guest has another part in a partition than the metadata give it."""
    led = {each.number: each.epoch for each in world.parts.values() if each.is_led}
    if world.guests[0].led != led:
        yield f"the guest knows of {world.guests[0].led}, led are {led}"
    if any(call != (world.now_ms, world.out) for call in world.guests[0].calls):
        yield f"at {world.now_ms} ms the guest is told {world.guests[0].calls}"
    for each in world.parts.values():
        role = world.role.roles.get(each.number)
        wanted = "leading" if each.is_led else each.role if each.is_held else "none"
        found = "none" if role is None else role.replica_role.name.lower()
        if found != wanted:
            yield f"{each} is {found}, and {wanted} is due"
        if (world.role.led_log(each.number) is not None) != each.is_led:
            yield f"the guest finds another log of {each}"
        if each.is_held:
            log = world.logs[each.number].log
            if (log.log_start_offset, log.log_end_offset) != (each.start, each.end):
                yield f"the log of {each} is from {log.log_start_offset} to {log.log_end_offset}"


@settings(max_examples=25)
@given(draws=DRAWS)
def test_a_broker_owes_what_the_facts_say(draws: Draws) -> None:
    assert _lived(World(draws)) == ""


@pytest.mark.deep
@settings(max_examples=400)
@given(draws=DRAWS)
def test_many_brokers_owe_what_the_facts_say(draws: Draws) -> None:
    assert _lived(World(draws)) == ""
