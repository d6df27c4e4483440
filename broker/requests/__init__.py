"""Model the request path of one broker: sockets, threads, queues, and the purgatory.

- reactor: Model a broker's request path, from socket to log and back, as discrete events (Reactor pattern).
- channel: Decide when a broker reads from a connection: one request at a time per connection.
- purgatory: Hold requests in the purgatory until their condition is met or their time expires; usable by itself.
- timing_wheel: Keep timers in a hierarchical timing wheel, where most timers are cancelled; usable by itself.
- options: Configure the request path and the load on it.
- measures: Measure a run of the request path, in the terms of Kafka's metrics.
- cli: Run `brokerside requests`, which measures a broker's threads and queues under load.
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
