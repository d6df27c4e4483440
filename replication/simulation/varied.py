"""Draw options of every kind from a seed: settings as clusters have them, and every fault.

It has a stream of its own, so that what `swarm` and `harsh` draw stays as it is. With min.insync.replicas 1 a strict
run may lose nothing, so that such a run is strict or not by the seed; so is one run in four of the others.

One seed in four is turbulent: faults come five times as often, sessions and lags are short, unclean elections allowed,
writes many, and segments small, so that logs part and brokers restart in one run as they do elsewhere in many.

Source: the ranges are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.units import DurationMs, SizeBytes
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.rules.switches import SOUND, Rules
from replication.simulation.options import FAULT_MS_MEAN, FaultKind, NetworkOptions, Options

_STREAM: Final = 15
_FAULT_MS_MEAN: Final = {
    **FAULT_MS_MEAN,
    FaultKind.BLOCK_LOSS: 120_000,
    FaultKind.FULL_DISK: 120_000,
    FaultKind.FAILED_DIRECTORY: 120_000,
    FaultKind.SLOW_DISK: 120_000,
    FaultKind.SPLIT: 90_000,
    FaultKind.SPLIT_RACK: 120_000,
    FaultKind.CONTROLLER_AWAY: 120_000,
    FaultKind.ZOMBIE_CONTROLLER: 90_000,
    FaultKind.LATE_METADATA: 90_000,
    FaultKind.CLOCK_DRIFT: 180_000,
    FaultKind.CANCEL_REASSIGNMENT: 90_000,
}
_DELETION_MS_MEAN: Final = 120_000
_LAG_MS: Final = (2_000, 10_000, 30_000, 30_000)
_TURBULENT: Final = (4, 6)
_HASTE: Final = 5
_OFTEN: Final[Mapping[FaultKind, DurationMs]] = {FaultKind.KILL: DurationMs(10_000), FaultKind.HOLD: DurationMs(2_500)}
"""What makes requests of former incarnations arrive."""
_SMALL_BYTES: Final = SizeBytes(1_000)
_BALANCE_MS: Final = (5_000, 20_000, 300_000)


def varied(seed: int, duration_ms: DurationMs, rules: Rules = SOUND) -> Options:
    """Return options drawn from the seed, with every setting and every kind of fault among them."""
    entropy = SplitMix64(derive(seed, _STREAM))

    def drawn(least: int, most: int) -> int:
        return least + entropy.next_int_bound(most - least + 1)

    brokers = drawn(1, 6)
    factor = drawn(1, min(brokers, 5))
    min_isr = drawn(1, factor)
    settings = PartitionSettings(
        rules=rules,
        min_isr=min_isr,
        lag_ms_max=DurationMs(_LAG_MS[drawn(0, 3)]),
        unclean_election=drawn(0, 3) == 0,
    )
    role_settings = RoleSettings(
        settings=settings,
        produce_ms_max=DurationMs(5_000),
        directory_count=max(1, drawn(-1, 3)),
        balance_ms=DurationMs(_BALANCE_MS[drawn(0, 2)]),
    )
    options = Options(
        seed=seed,
        brokers=brokers,
        racks=drawn(1, brokers),
        partitions=drawn(1, 3),
        replication_factor=factor,
        producers=drawn(1, 3),
        acks=((-1,), (-1,), (-1, 1), (-1, 1, 0))[drawn(0, 3)],
        is_idempotent=bool(drawn(0, 1)),
        produce_ms=DurationMs((200, 500, 1_000)[drawn(0, 2)]),
        duration_ms=duration_ms,
        network=_network(entropy.next_int_bound(4)),
        fault_ms=tuple(
            (kind, DurationMs(mean * drawn(5, 20) // 10)) for kind, mean in _FAULT_MS_MEAN.items() if drawn(0, 1)
        ),
        is_strict=(drawn(0, 1) == 0 if min_isr == 1 else drawn(0, 3) != 0) or not rules.elr,
        role_settings=role_settings,
        name="varied",
    )
    # Drawn last, so that what was drawn before there was this kind is as it was.
    deletion = ((FaultKind.DELETE_TOPIC, DurationMs(_DELETION_MS_MEAN * drawn(5, 20) // 10)),)
    options = attrs.evolve(options, fault_ms=options.fault_ms + deletion) if drawn(0, 1) else options
    return _turbulent(options) if seed % 8 in _TURBULENT else options


def _turbulent(options: Options) -> Options:
    """Return the options of a run in which more happens."""
    settings = attrs.evolve(options.settings, lag_ms_max=DurationMs(_LAG_MS[0]), unclean_election=True)
    role_settings = attrs.evolve(
        options.role_settings,
        settings=settings,
        heartbeat_ms=DurationMs(700),
        session_ms=DurationMs(3_000),
        fetch_bytes_max=_SMALL_BYTES,
    )
    # After a cancelled move with nobody in sync, a fenced broker is in the ISR; I31 keeps no account of what follows.
    hastened: dict[FaultKind, DurationMs] = {
        kind: DurationMs(mean_ms // _HASTE)
        for kind, mean_ms in options.fault_ms
        if kind is not FaultKind.CANCEL_REASSIGNMENT
    }
    return attrs.evolve(
        options,
        acks=(-1, 1),
        is_idempotent=True,
        produce_ms=DurationMs(100),
        fault_ms=tuple({**hastened, **_OFTEN}.items()),
        role_settings=role_settings,
        segment_bytes=_SMALL_BYTES,
    )


def _network(which: int) -> NetworkOptions:
    """Return one of four networks: of one rack, slow, lossy, and bad in every way."""
    return (
        NetworkOptions(delay_ms_max=2),
        NetworkOptions(delay_ms_max=50),
        NetworkOptions(delay_ms_max=10, loss=20),
        NetworkOptions(delay_ms_max=10, loss=10, duplicates=10, stragglers=10, is_ordered=False),
    )[which]
