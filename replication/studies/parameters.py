"""The parameters of one run of a study, which combinations are possible, and what is counted in a run.

>>> Parameters(factor=2, min_isr=3)
Traceback (most recent call last):
broker.errors.UsageError: min_isr is 3; allowed are whole numbers from 1 to 2 (factor)

Source: Kafka's topic and broker settings by their own names; failures and repairs are an input (see the README).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from broker.wording import nearest
from replication.rules.switches import Rules, rules_of, sound, without
from replication.simulation.options import BROKER_COUNT_MAX, MINUTES_MAX, PARTITION_COUNT_MAX

REPLICATIONS: Final = ("isr", "quorum")
FAILURES: Final = ("crash", "power", "disk")
RESTARTS: Final = ("none", "controlled", "uncontrolled")
ACKS: Final[Mapping[str, int]] = {"all": -1, "1": 1, "0": 0}
FACTOR_MAX: Final = 9
_CHOICES: Final = {"replication": REPLICATIONS, "acks": tuple(ACKS), "failure": FAILURES, "restarts": RESTARTS}
_WHOLE_MAX: Final = (1 << 63) - 1  # A row of a study holds 64 bits.
_TYPE_NAMES: Final = {str: "text", int: "a whole number", float: "a finite number", bool: "true or false"}


@attrs.frozen(kw_only=True)
class Parameters:
    """Hold the parameters of a run; impossible ones raise UsageError.

    Settings: `acks` is "all", "1" or "0"; `min_isr`, `unclean`, `elr`, `factor`, `lag_seconds` and `release` are
    min.insync.replicas, unclean.leader.election.enable, eligible leader replicas (KIP-966), the replication factor,
    replica.lag.time.max.ms and the release of Kafka. `replication` is "isr", or "quorum" for a log on a majority.

    Failures: each broker fails on average every `mttf_minutes` minutes (0: never), for `repair_seconds` on average.
    `failure` is "crash" (the process dies), "power" (the unflushed end of its logs is gone, too) or "disk" (everything
    is). `rack_mttf_minutes` is the same for whole racks, by power. `restarts` restarts one broker after the other,
    every `restart_seconds`, for `restart_down_seconds` each.

    `election` is "kafka", or a policy of one's own as "module:function". `minutes` is the simulated length of the run.
    """

    replication: str = "isr"
    acks: str = "all"
    factor: int = 3
    min_isr: int = 2
    unclean: bool = False
    elr: bool = True
    lag_seconds: float = 30.0
    release: str = NEWEST.name
    brokers: int = 0
    """The number of brokers; 0 for the replication factor."""
    racks: int = 0
    """The number of racks; 0 for one rack a broker."""
    partitions: int = 2
    producers: int = 2
    produce_ms: int = 1_000
    failure: str = "crash"
    mttf_minutes: float = 0.0
    repair_seconds: float = 30.0
    rack_mttf_minutes: float = 0.0
    restarts: str = "none"
    restart_seconds: float = 60.0
    restart_down_seconds: float = 10.0
    election: str = "kafka"
    minutes: float = 10.0

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            object.__setattr__(self, field.name, checked(field.name, getattr(self, field.name)))
        for name, least, most, why in self._ranges():
            value = getattr(self, name)
            if not least <= value <= most:
                kind = "whole numbers" if isinstance(value, int) else "numbers"
                raise UsageError(f"{name} is {value}; allowed are {kind} from {least} to {most}{why}")
        Release(self.release)

    def _ranges(self) -> tuple[tuple[str, float, float, str], ...]:
        return (
            ("factor", 1, FACTOR_MAX, ""),
            ("min_isr", 1, self.factor, " (factor)"),
            ("brokers", 0 if self.brokers == 0 else self.factor, BROKER_COUNT_MAX, " (from the factor on)"),
            ("racks", 0, self.broker_count, " (brokers)"),
            ("partitions", 1, PARTITION_COUNT_MAX, ""),
            ("producers", 1, 100, ""),
            ("produce_ms", 1, 60_000, ""),
            ("lag_seconds", 0.001, 3_600, ""),
            ("mttf_minutes", 0, 1e9, ""),
            ("rack_mttf_minutes", 0, 1e9, ""),
            ("repair_seconds", 0.001, 86_400, ""),
            ("restart_seconds", 1, 86_400, ""),
            ("restart_down_seconds", 0.001, 86_400, ""),
            ("minutes", 0.1, MINUTES_MAX, ""),
        )

    @property
    def broker_count(self) -> int:
        """Return the number of brokers."""
        return self.brokers or self.factor

    @property
    def rack_count(self) -> int:
        """Return the number of racks."""
        return self.racks or self.broker_count

    @property
    def rules(self) -> Rules:
        """Return the rules of the release, without ELR if it is off."""
        rules = sound(rules_of(self.release))
        return rules if self.elr else without(rules, "elr")


NAMES: Final = tuple(field.name for field in attrs.fields(Parameters))


def checked(name: str, found: Any) -> Any:
    """Return a value in the type of its parameter, as 30.0 for 30 and "1" for acks 1.

    Raises UsageError for a name that is no parameter, another type, and a word that is none of the parameter's.
    """
    if name not in NAMES:
        meant = nearest(name, NAMES)
        hint = f"did you mean {meant!r}?" if meant else f"known are {', '.join(NAMES)}"
        raise UsageError(f"{name!r} is no parameter of a study; {hint}")
    value = found
    wanted = type(attrs.fields_dict(Parameters)[name].default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, int) and abs(value) > _WHOLE_MAX:
        raise UsageError(
            f"{name} is a whole number of {len(str(abs(value)))} digits; allowed are {-_WHOLE_MAX} to {_WHOLE_MAX}"
        )
    if wanted is float and is_number:
        value = float(value) if math.isfinite(value) else None
    elif name in ("acks", "release") and is_number:
        value = "all" if (name, value) == ("acks", -1) else str(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise UsageError(f"{name} is {found!r}; wanted is {_TYPE_NAMES[wanted]}")
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise UsageError(f"{name} is {value!r}; allowed are {', '.join(choices)}")
    return value


SAMPLE_MS: Final = 100
"""How often availability is looked at, in ms of the virtual clock."""


@attrs.define
class Availability:
    """Count the time of partitions, looked at every SAMPLE_MS: all of it, without a leader, and without writes."""

    partition_ms: int = 0
    leaderless_ms: int = 0
    unavailable_ms: int = 0

    def note(self, *, has_leader: bool, takes_writes: bool) -> None:
        """Count SAMPLE_MS more of a partition's time, by whether it has a leader and takes writes."""
        self.partition_ms += SAMPLE_MS
        self.leaderless_ms += SAMPLE_MS * (not has_leader)
        self.unavailable_ms += SAMPLE_MS * (not takes_writes)


@attrs.frozen(kw_only=True)
class Measures:
    """Hold what was counted in one run.

    Writes: `write_count`, `acked_all` and `acked_one` (acknowledged with acks=all and acks=1), of these lost `lost_all`
    and `lost_one`; `lost_to_unclean`, `lost_to_last_known` and `lost_to_other` say to what election, the last also if
    to none. `duplicate_count` counts values that stand in a log more than once.

    Time: `unavailable_ms` is the time, summed over partitions, in which no write with the run's acks could have been
    acknowledged; `leaderless_ms` that in which there was no leader; `partition_ms` all time. All in steps of SAMPLE_MS.
    Latencies are from the first send to the acknowledgement, in ms, of acknowledged writes; -1 if there were none.

    `clean_elections`, `elr_elections` and `unclean_elections` count elections of another leader by their kind, those of
    the last known leader among the unclean; `failure_count` failures and restarts that were drawn, `loss_count`
    those that lost records. `message_count` counts all messages that arrived.
    """

    write_count: int = 0
    acked_all: int = 0
    acked_one: int = 0
    lost_all: int = 0
    lost_one: int = 0
    lost_to_unclean: int = 0
    lost_to_last_known: int = 0
    lost_to_other: int = 0
    duplicate_count: int = 0
    unavailable_ms: int = 0
    leaderless_ms: int = 0
    partition_ms: int = 0
    latency_mean_ms: float = -1.0
    latency_p50_ms: int = -1
    latency_p99_ms: int = -1
    latency_max_ms: int = -1
    clean_elections: int = 0
    elr_elections: int = 0
    unclean_elections: int = 0
    failure_count: int = 0
    loss_count: int = 0
    message_count: int = 0

    def with_latencies(self, found: Iterable[int]) -> Measures:
        """Return the measures with the four columns of latencies."""
        ordered = sorted(found)
        if not ordered:
            return self
        last = len(ordered) - 1
        return attrs.evolve(
            self,
            latency_mean_ms=round(sum(ordered) / len(ordered), 3),
            latency_p50_ms=ordered[last // 2],
            latency_p99_ms=ordered[(99 * last + 99) // 100],
            latency_max_ms=ordered[-1],
        )
