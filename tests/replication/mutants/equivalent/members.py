"""List the equivalent mutants of groups' members and clients, each with the reason.

What it decides: nothing beside `equivalents`, which reads the list and says what belongs in it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MEMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "replication/groups/client/classic_client.py _refresh_topics [dropped branch] self._assigned_counts is "
        "None -> False": (
            "the timer that is set instead of cancelled asks nothing when it ends, as it looks at the counts again"
        ),
        "replication/groups/connections.py answer [dropped operand] end is not None and end.session == "
        "caller.session and caller.ticket in end.answers -> (end.session == caller.session and caller.ticket in "
        "end.answers)": ("callers come from `take` of the same ends, which made the end, and no end is ever removed"),
        "replication/groups/connections.py take [off by one] 0 -> 1": (
            "tickets begin with 1, so that none is below either number"
        ),
        "replication/groups/connections.py take [comparison] asked.ticket < min(end.answers, default=Ticket(0)) "
        "-> (asked.ticket <= min(end.answers, default=Ticket(0)))": (
            "a ticket that equals the least of those known is known, which is asked before"
        ),
        "replication/groups/connections.py take [dropped call] end.answers = {ticket: answer for ticket, answer "
        "in end.answers.items() if ticket >= asked.floor} -> pass": (
            "a client never asks again for what is below the floor that it told; only memory is not given back"
        ),
        "replication/groups/client/consumer_client.py __init__ [off by one] 0 -> 1": (
            "until the first answer tells the interval, and that is longer than 1 ms, only urgent heartbeats are sent"
        ),
        **dict.fromkeys(
            (
                "replication/groups/commits.py impossible [off by one] 1 -> 2",
                "replication/groups/commits.py _why_impossible [off by one] 1 -> 2",
            ),
            "times are not negative: both lie before all",
        ),
        "replication/groups/client/client.py __init__ [dropped call] self._is_busy = False -> pass": (
            "the first poll, at the start, sets it before anything looks at it"
        ),
        **dict.fromkeys(
            (
                "replication/groups/alone/simulation.py __init__ [off by one] 0 -> 1 (3)",
                "replication/groups/alone/simulation.py _at [off by one] 1 -> 2",
                "replication/groups/alone/simulation.py _arrive [off by one] 1 -> 2",
            ),
            "the numbers of events and tickets only tell one from another and rise all the same; a process that starts "
            "draws from another stream, which is its own too",
        ),
        **dict.fromkeys(
            (
                "replication/groups/alone/simulation.py __init__ [swapped arguments] derive(seed, _NETWORK_STREAM) -> "
                "derive(_NETWORK_STREAM, seed)",
                "replication/groups/alone/simulation.py __init__ [swapped arguments] derive(seed, _COORDINATOR_STREAM) "
                "-> derive(_COORDINATOR_STREAM, seed)",
                "replication/groups/alone/simulation.py __init__ [swapped arguments] derive(seed, _COORDINATOR_STREAM) "
                "-> derive(_COORDINATOR_STREAM, seed) (2)",
                "replication/groups/alone/simulation.py _start [swapped arguments] derive(self._seed, _CLIENT_STREAM, "
                "self._count) -> derive(_CLIENT_STREAM, self._seed, self._count)",
                "replication/groups/alone/simulation.py _start [swapped arguments] derive(self._seed, _CLIENT_STREAM, "
                "self._count) -> derive(self._seed, self._count, _CLIENT_STREAM)",
            ),
            "another stream of chance, of the same numbers; the streams of one run are independent all the same",
        ),
        "replication/groups/alone/simulation.py _start [dropped branch] member.instance_id is None -> False": (
            "InstanceId is a name for the type checker only: of None it makes None"
        ),
        "replication/groups/shard.py close [swapped arguments] held.finish(ErrorCode.NOT_COORDINATOR, now_ms) -> "
        "held.finish(now_ms, ErrorCode.NOT_COORDINATOR)": (
            "whatever is neither NONE nor REQUEST_TIMED_OUT is answered NOT_COORDINATOR, and a refusal takes no time"
        ),
        "replication/groups/alone/simulation.py _thaw [dropped call] self._take(process, "
        "process.client.advance(self.now_ms)) -> pass": (
            "what is due has been put into the inbox, and whatever calls a client lets it run its due timers first"
        ),
        "replication/groups/client/classic_client.py __init__ [dropped call] self.is_leader = False -> pass": (
            "`_give_up_partitions`, before the first JoinGroup, sets it before anything looks at it"
        ),
        "replication/groups/client/classic_client.py _refresh_topics [dropped call] self._timers.cancel(_METADATA) "
        "-> pass": "the timer asks nothing when it ends, as it looks at the counts again; who leads again sets it anew",
        "replication/groups/client/client.py __init__ [off by one] 0 -> 1 (2)": (
            "the time of a commit is set again as partitions come to be owned; before that there is nothing to commit"
        ),
        "replication/groups/client/consumer_client.py updated [off by one] 1 -> 2": (
            "numbers of assignments only tell one from another, and from the number that stands for none, below all"
        ),
        **dict.fromkeys(
            (
                "replication/groups/client/consumer_client.py __init__ [dropped call] self._epoch = JOINING_EPOCH "
                "-> pass",
                "replication/groups/client/consumer_client.py __init__ [dropped call] self._has_rejoined = False "
                "-> pass",
            ),
            "`_join`, in the first poll, at the start, sets it before anything looks at it",
        ),
    }
)
