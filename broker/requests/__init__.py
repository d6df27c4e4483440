"""Model the request path of one broker: sockets, threads, queues, and the purgatory.

`reactor` plays a load through it; `options` says what it is made of and what comes; `measures` what is found.
`purgatory` and `timing_wheel` serve by themselves too; `channel` is the table of a connection.
"""

from __future__ import annotations

from broker.requests.channel import CHANNEL_TRANSITIONS, ChannelInput, ChannelState
from broker.requests.measures import PHASES, KindReport, PathReport, Quantiles
from broker.requests.options import REQUEST_KINDS, Load, RequestKind, RequestPathOptions, Waits, capacity_per_second
from broker.requests.purgatory import DelayedOperation, Purgatory
from broker.requests.reactor import RequestPath
from broker.requests.timing_wheel import Timer, TimerEntry

__all__ = (
    "CHANNEL_TRANSITIONS",
    "PHASES",
    "REQUEST_KINDS",
    "ChannelInput",
    "ChannelState",
    "DelayedOperation",
    "KindReport",
    "Load",
    "PathReport",
    "Purgatory",
    "Quantiles",
    "RequestKind",
    "RequestPath",
    "RequestPathOptions",
    "Timer",
    "TimerEntry",
    "Waits",
    "capacity_per_second",
)
