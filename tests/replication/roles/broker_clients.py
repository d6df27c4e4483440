"""Requests of clients, followers and a hosted role to one broker, and the messages that it owes them.

Each step hands the broker one message and returns the messages that are due; None if there was nothing to send.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from replication.roles.messages import (
    Address,
    ConsumerFetch,
    Fetch,
    FetchExpired,
    ListOffsets,
    Message,
    MetadataRequest,
    NodeId,
    OffsetsForLeaderEpoch,
    Produce,
    ProduceExpired,
)
from replication.rules.fetch import FetchRequest
from tests.replication.roles.broker_facts import OWN, Part, Place, Said
from tests.replication.roles.broker_world import EPOCH, SETTINGS, GuestWrite, World, record

CLIENT: Final = 100
_STORAGE: Final = ErrorCode.KAFKA_STORAGE_ERROR


def wrote(world: World, part: Part) -> list[Said]:
    """Let a client or the guest write."""
    data = record(0, -1, world.now_ms)
    if world.draws.is_one_in(5):
        return _guest_wrote(world, part, data)
    write = Produce(part.number, world.next_number(), world.draws.one((-1, -1, -1, 1, 0, 2, -2)), data)
    world.tell(write, CLIENT)
    if world.disks.failed:
        return [part.of_write(CLIENT, write.number, _STORAGE, None, appended=True)] if write.acks else []
    return _produced(world, part, write, CLIENT)


def _produced(world: World, part: Part, write: Produce, client: int) -> list[Said]:
    """Return what a write owes, and note its timer."""
    end, due = part.end, list(part.on_produce(write, client))
    world.advances = part.end > end
    if world.advances and write.acks == -1:
        expires = ProduceExpired(part.number, write.number, Address(NodeId(client)))
        world.timers.append((SETTINGS.produce_ms_max, expires))
    return due


def _guest_wrote(world: World, part: Part, data: bytes) -> list[Said]:
    """Let the guest write: an error is told at once and not sent, and it is answered as the broker's own client."""
    (guest,) = world.guests
    guest.wrote = None
    world.tell(GuestWrite(part.number, data), CLIENT)
    if world.disks.failed:
        return []
    assert guest.wrote is not None
    error, number = guest.wrote
    due = _produced(world, part, Produce(part.number, number, -1, data), OWN)
    refused = [each for each in due if each.kind == "ProduceResponse"]
    wanted = refused[0].fields[1] if refused else ErrorCode.NONE
    if not part.is_led:
        wanted = ErrorCode.NOT_LEADER_OR_FOLLOWER  # The guest is told no more than that.
    assert error is wanted, (error, wanted)
    return [each for each in due if each.kind != "ProduceResponse"]


def fetched(world: World, part: Part) -> list[Said]:
    """Let a follower fetch, or who is none; now and then the disk cannot be read."""
    draws = world.draws
    request = FetchRequest(
        replica=BrokerId(draws.one((1, 1, 2, 2, 9))),
        offset=Offset(draws.one((part.end, draws.number(0, part.end + 1)))),
        leader_epoch=LeaderEpoch(draws.one((*[part.epoch] * 6, part.epoch + 1, max(0, part.epoch - 1), -1))),
        last_fetched_epoch=LeaderEpoch(draws.one((-1, -1, draws.number(0, part.epoch + 1)))),
        start_offset=Offset(0),
        broker_epoch=EPOCH,
    )
    fetch = Fetch(part.number, world.next_number(), request)
    place = part.place(fetch, world.epoch_starts(part))
    is_read = part.is_led and request.offset < part.end and not part.waiting and place is Place.KNOWN
    with world.unreadable(part, is_so=is_read and draws.is_one_in(5)):
        world.tell(fetch, request.replica)
    if world.disks.failed:
        part.held.pop(request.replica, None)
        return [part.of_fetch(fetch, _STORAGE)]
    due = list(part.on_fetch(fetch, place))
    if not due:
        expires = FetchExpired(part.number, fetch.number, request.replica)
        world.timers.append((SETTINGS.fetch_wait_ms, expires))
    return due


def expired(world: World, part: Part) -> list[Said] | None:
    """Let one who waits lose patience, or a timer of a former request ring."""
    draws, off = world.draws, int(world.draws.is_one_in(5))
    if part.held and draws.is_one_in(2):
        follower = draws.one(sorted(part.held))
        number = part.held[follower].number + off
        world.tell(FetchExpired(part.number, number, follower))
        return list(part.on_expired(number, follower))
    if not part.waiting:
        return None
    client, number = draws.one(sorted(part.waiting))
    world.tell(ProduceExpired(part.number, number + off * 1_000, Address(NodeId(client))))
    if off:
        return []
    offset = part.waiting.pop((client, number))
    return [part.of_write(client, number, ErrorCode.REQUEST_TIMED_OUT, offset, appended=True)]


def asked(world: World, part: Part) -> list[Said]:
    """Ask what changes nothing."""
    draws, number = world.draws, world.next_number()
    believed = LeaderEpoch(draws.one((part.epoch, part.epoch, -1, part.epoch + 1, max(0, part.epoch - 1))))
    questions: tuple[Message, ...] = (
        OffsetsForLeaderEpoch(part.number, number, LeaderEpoch(draws.number(0, 3)), believed),
        ListOffsets(part.number, number, believed),
        ListOffsets(part.number, number, is_of_client=True),
        ConsumerFetch(part.number, number, Offset(draws.number(0, part.end + 1))),
        MetadataRequest(part.number, number),
    )
    message = draws.one(questions)
    is_read = isinstance(message, ConsumerFetch) and not part.waiting
    with world.unreadable(part, is_so=is_read and draws.is_one_in(3)):
        world.tell(message, CLIENT)
    if world.disks.failed:
        return [Said(CLIENT, "ConsumerFetchResponse", part.number, (number, _STORAGE, None, -1, -1))]
    return list(part.on_question(message, CLIENT, world.high_watermark(part)))
