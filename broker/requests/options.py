"""Configure the request path and the load on it.

Source: SocketServerConfigs and ServerConfigs, Kafka 4.0, for names and defaults.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import attrs

from broker.config.settings import Settings
from broker.errors import UsageError
from broker.units import DurationMs

SECOND_US: Final = 1_000_000


def _check(options: Any, of: str = "", **least: int) -> None:
    """Raise UsageError for a number below 1, or below the `least` of its name."""
    for name, value in attrs.asdict(options, recurse=False).items():
        if isinstance(value, int) and value < least.get(name, 1):
            raise UsageError(f"{name}{of} is {value}; at least {least.get(name, 1)} is allowed")


class Waits(enum.Enum):
    """List the conditions for which a request waits in the purgatory before its response."""

    NOTHING = "nothing"
    """Answered by the handler: metadata, produce with acks=1."""

    COMMIT = "commit"
    """Produce with acks=all: until the followers have its records."""

    DATA = "data"
    """Fetch: until there is something new to read."""


@attrs.frozen(kw_only=True)
class RequestKind:
    """Describe one kind of request: frequency, mean cost per thread in microseconds, purgatory condition.

    `wait_ms_max` bounds the waiting: request.timeout.ms of a produce, fetch.max.wait.ms of a fetch.
    """

    name: str
    weight: int = 1
    read_us: int = 10
    handle_us: int = 200
    write_us: int = 10
    waits: Waits = Waits.NOTHING
    wait_ms_max: DurationMs = attrs.field(default=DurationMs(30_000))

    def __attrs_post_init__(self) -> None:
        _check(self, f" of request kind {self.name!r}", wait_ms_max=0)


PRODUCE: Final = RequestKind(name="Produce", weight=1, handle_us=300, read_us=20, waits=Waits.COMMIT)
FETCH: Final = RequestKind(
    name="Fetch", weight=2, handle_us=150, write_us=20, waits=Waits.DATA, wait_ms_max=DurationMs(500)
)
METADATA: Final = RequestKind(name="Metadata", weight=1, handle_us=50)
REQUEST_KINDS: Final = (PRODUCE, FETCH, METADATA)
"""What comes at a broker by default, in Kafka's names."""


@attrs.frozen(kw_only=True)
class RequestPathOptions:
    """Set a broker's threads and queue: num.network.threads, num.io.threads, queued.max.requests."""

    network_thread_count: int = 3
    io_thread_count: int = 8
    queued_requests_max: int = 500

    def __attrs_post_init__(self) -> None:
        _check(self)

    @classmethod
    def of(cls, settings: Settings) -> RequestPathOptions:
        """Return the options set by a broker's settings."""
        return cls(
            network_thread_count=settings.count("num.network.threads"),
            io_thread_count=settings.count("num.io.threads"),
            queued_requests_max=settings.count("queued.max.requests"),
        )


@attrs.frozen(kw_only=True)
class Load:
    """Set the load on the broker: requests per second over all connections, drawn at random, for `duration_ms`.

    `replication_us` is the mean time until followers have a record. The first `slow_handler_count` handlers
    take `slow_factor` times as long as the others.
    """

    requests_per_second: int
    duration_ms: DurationMs = attrs.field(default=DurationMs(10_000))
    connection_count: int = 100
    partition_count: int = 50
    kinds: tuple[RequestKind, ...] = REQUEST_KINDS
    replication_us: int = 2_000
    slow_handler_count: int = 0
    slow_factor: int = 1

    def __attrs_post_init__(self) -> None:
        _check(self, slow_handler_count=0)
        if not self.kinds:
            raise UsageError("a load needs at least one kind of request")


def capacity_per_second(options: RequestPathOptions, kinds: tuple[RequestKind, ...]) -> int:
    """Return the requests per second that the busier thread pool can carry, without waiting."""
    weight = sum(kind.weight for kind in kinds)
    handle_us = sum(kind.weight * kind.handle_us for kind in kinds)
    network_us = sum(kind.weight * (kind.read_us + kind.write_us) for kind in kinds)
    io_bound = options.io_thread_count * SECOND_US * weight // handle_us
    return max(1, min(io_bound, options.network_thread_count * SECOND_US * weight // network_us))
