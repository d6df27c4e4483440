"""Read the topics and faults of `brokerside serve`.

>>> read_topic("orders:6")
('orders', 6)
>>> print(read_fault("kill 2 at 30s for 10s"))
at 30000 ms KILL broker 2 for 10000 ms

Source: ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import DAY_MS, DurationMs, TimeMs
from replication.simulation.fault import Fault, kind_word, target_name
from replication.simulation.options import FaultKind
from replication.testing.topics import DURATION_MS, PARTITION_COUNT_MAX, is_legal_name

_UNITS_MS: Final[Mapping[str, int]] = {"ms": 1, "s": 1_000, "m": 60_000}
_FAULT: Final = re.compile(
    r"(?P<kind>[a-z-]+)(?: (?P<target>\d{1,6}))? at (?P<at>\d{1,9})(?P<at_unit>ms|s|m)"
    r"(?: for (?P<length>\d{1,9})(?P<length_unit>ms|s|m))?"
)
FAULT_KINDS: Final[Mapping[str, FaultKind]] = {
    kind_word(kind): kind
    for kind in (
        *(FaultKind.KILL, FaultKind.POWER_LOSS, FaultKind.WIPE, FaultKind.STOP, FaultKind.PAUSE, FaultKind.CUT_PEERS),
        *(FaultKind.CUT_CONTROLLER, FaultKind.ISOLATE, FaultKind.DEAF, FaultKind.MUTE, FaultKind.SLOW),
        *(FaultKind.SLOW_DISK, FaultKind.FULL_DISK, FaultKind.FAILED_DIRECTORY, FaultKind.LATE_METADATA),
        *(FaultKind.CONTROLLER_FAILOVER, FaultKind.CONTROLLER_AWAY),
    )
}
"""The kinds by the names that users write."""
_LASTING_MS: Final = 10_000
"""How long a fault lasts that is given without a length."""


@attrs.frozen(kw_only=True)
class ServeOptions:
    """Hold the options of `brokerside serve`; `dump` is that of --from."""

    brokers: int
    racks: str | None
    dump: str | None
    only: str | None
    cluster: str | None
    at: str | None
    partial: bool
    topics: tuple[str, ...]
    factor: int | None
    min_isr: int | None
    port: int
    faults: tuple[str, ...]
    unclean: bool
    no_auto_create: bool
    seed: int
    as_json: bool


def read_topic(text: str) -> tuple[str, int]:
    """Return the name and the number of partitions of NAME or NAME:PARTITIONS; raise UsageError for anything else."""
    name, _, count = text.partition(":")
    if not is_legal_name(name):
        raise UsageError(f"topic {name!r} has a name that Kafka does not allow")
    if count and not (count.isascii() and count.isdigit() and 1 <= int(count) <= PARTITION_COUNT_MAX):
        raise UsageError(
            f"topic {name!r} is to have {count!r} partitions; allowed are whole numbers from 1 to {PARTITION_COUNT_MAX}"
        )
    return name, int(count or 1)


def read_fault(text: str) -> Fault:
    """Return the fault of `KIND [BROKER] at TIME [for TIME]`; raise UsageError for anything else."""
    found = _FAULT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"fault {text!r} is not understood; write for example 'kill 2 at 30s for 10s'")
    kind, target = found["kind"], found["target"]
    if kind not in FAULT_KINDS:
        raise UsageError(f"fault {text!r}: there is no {kind!r}; faults are {', '.join(FAULT_KINDS)}")
    if bool(target_name(FAULT_KINDS[kind])) is (target is None):
        raise UsageError(f"fault {text!r}: {kind} {'strikes a broker' if target is None else 'strikes no broker'}")
    length = found["length"]
    length_ms = _LASTING_MS if length is None else int(length) * _UNITS_MS[found["length_unit"]]
    at_ms = TimeMs(int(found["at"]) * _UNITS_MS[found["at_unit"]])
    if not length_ms:
        raise UsageError(f"fault {text!r} lasts 0 ms; 1 ms or more is allowed")
    if at_ms + length_ms > DURATION_MS:
        raise UsageError(f"fault {text!r} ends after {DURATION_MS // DAY_MS} days, which is as long as a cluster runs")
    return Fault(at_ms, FAULT_KINDS[kind], int(target or 0), DurationMs(length_ms))
