"""Decide from one moment of a cluster which brokers are alive.

What it decides: for each broker, in this order of evidence:

- what the user states (`--down`, `--alive`): `STATED_DOWN`, or `ALIVE`;
- its registration in a metadata log: `FENCED`, `STOPPING` (controlled shutdown), `UNREGISTERED` if it has none though
  it holds replicas, else `ALIVE`, also where it is in no ISR: a broker is unfenced before it has caught up;
- `OFFLINE`: every replica that it holds is listed as offline;
- `ISR_UNLED`: it leads nothing, and every ISR that it is in is that of a partition without a leader;
- `IN_NO_ISR`: it holds replicas of led partitions and is in the ISR of none;
- `ALIVE` otherwise, so also a broker that holds nothing, and every broker where no ISR is shown.

A describe shows no registrations, so the partitions are the only evidence of a dead broker there. A broker that has
just started and still catches up in all its partitions looks like `IN_NO_ISR` too; `--alive` says so.

Constraints: the ISR of a partition without a leader is evidence of death: the controller elects a live member of ISR or
ELR at once, so none of them is live. Of its other replicas nothing is known, as they had nobody to follow. An observer
is out of the ISR by design, and a replica that is being added is not in it yet, so neither is evidence of death. A
partition that is led and shows an empty ISR does not show its ISR.

Example: replicas 1, 2 and 1, 3; broker 3 is in no ISR.

    >>> found = liveness(
    ...     [None, None, None],
    ...     np.array([[0, 1], [0, 2]]),
    ...     leader=np.array([0, 0]),
    ...     isr=np.array([[0, 1], [0, -1]]),
    ... )
    >>> [each.value for each in found]
    ['alive', 'alive', 'in no ISR']

One word: a broker that is not alive receives no replica, leads nothing, is not restarted, and is no rack of its own.
Plans, their check and impact, outages, rolls and measures all ask `ClusterView.alive`.

Left out: a disk that failed alone, which makes some replicas of a broker offline.

Source: Kafka metadata PartitionChangeBuilder.electAnyLeader, ClusterControlManager.isActive, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from broker.ids import NO_LEADER
from broker.row_flags import any_in_row, count_each, members

_Matrix = NDArray[np.int64]


class Liveness(Enum):
    """Liveness of a broker: alive, or the evidence that it is down."""

    ALIVE = "alive"
    STATED_DOWN = "down by --down"
    FENCED = "fenced"
    STOPPING = "in controlled shutdown"
    UNREGISTERED = "not registered"
    OFFLINE = "every replica offline"
    ISR_UNLED = "only in the ISR of partitions without a leader"
    IN_NO_ISR = "in no ISR"

    @property
    def is_inferred(self) -> bool:
        """Return whether the partitions or the user show it, and no registration."""
        return self in (Liveness.STATED_DOWN, Liveness.OFFLINE, Liveness.ISR_UNLED, Liveness.IN_NO_ISR)


def liveness(
    registered: Sequence[Liveness | None],
    replicas: _Matrix,
    *,
    leader: NDArray[np.int64] | None = None,
    isr: _Matrix | None = None,
    offline: _Matrix | None = None,
    exempt: Sequence[_Matrix] = (),
    electable: Sequence[_Matrix] = (),
) -> tuple[Liveness, ...]:
    """Return what is known of each of B brokers; brokers are positions 0..B-1, and -1 pads.

    `registered` is what its registration or the user states of each, None for nothing; `replicas` int[P, W], `leader`
    int[P] with -1 for none and less for not shown, `isr` and `offline` int[P, any width]; the replicas in `exempt`
    (observers, those being added) need not be in the ISR; those in `electable` (ELR, last known ELR) would lead their
    partition if they were alive. Cost: O(replicas).
    """
    count = len(registered)
    down = np.zeros(count, dtype=np.bool_)
    if offline is not None:
        held = count_each(replicas, count)
        down = (held > 0) & (count_each(np.where(members(offline, replicas), offline, -1), count) >= held)
    unled = lagging = np.zeros(count, dtype=np.bool_)
    if isr is not None:
        lagging = _in_no_led_isr(count, replicas, leader, isr, exempt, electable)
        unled = lagging & (count_each(isr, count) > 0)
    shown = np.select([down, unled, lagging], [0, 1, 2], default=3).tolist()
    kinds = (Liveness.OFFLINE, Liveness.ISR_UNLED, Liveness.IN_NO_ISR, Liveness.ALIVE)
    return tuple(known or kinds[place] for known, place in zip(registered, shown, strict=True))


def _in_no_led_isr(
    count: int,
    replicas: _Matrix,
    leader: NDArray[np.int64] | None,
    isr: _Matrix,
    exempt: Sequence[_Matrix],
    electable: Sequence[_Matrix],
) -> NDArray[np.bool_]:
    """Return which brokers lead nothing and are in no ISR of a led partition, bool[count].

    They hold replicas of led partitions, or were last in sync of one without a leader.
    """
    counted = replicas
    for besides in exempt:
        counted = np.where(members(counted, besides), -1, counted)
    led = np.ones(replicas.shape[0], dtype=np.bool_) if leader is None else leader != NO_LEADER
    missing = count_each(np.where(led[:, None], counted, -1), count) > 0
    for candidates in (isr, *electable):
        missing |= count_each(candidates[~led], count) > 0
    seen = count_each(np.where(led[:, None], isr, -1), count) > 0
    if leader is not None:
        seen |= count_each(leader, count) > 0
    not_shown = led & ~any_in_row(isr >= 0)
    seen |= count_each(replicas[not_shown], count) > 0
    return np.asarray(missing & ~seen)
