"""Say how long moves take at a throttle, beside what clients produce meanwhile.

kafka-reassign-partitions --throttle sets one rate for what every broker involved sends as a leader, and one for what it
receives as a follower. Replicas that are in sync are never delayed, but their traffic counts, so that

    seconds = bytes to copy / (rate - traffic that counts)

and where that traffic reaches the rate, the copy never ends. Each partition takes part in what clients produce to its
broker (a capacity file) by its bytes.

Source: Kafka 4.3.1 ReplicaManager.shouldLeaderThrottle, KafkaApis.sizeOfThrottledPartitions, ReplicaFetcherThread,
RemoteLeaderEndPoint, QuotaConfig (replication.quota.window.num); Cruise Control capacity.json for NW_IN and NW_OUT.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.balance.loads import loads
from placement.planning.moves import FloatArray, Moves, Rates, quotient
from placement.planning.reassignment import Reassignment


@attrs.frozen(kw_only=True, eq=False)
class Links:
    """State what is known of the brokers' links: int64[B] bytes a second, -1 where not known.

    `throttle` holds for every broker, None for none; `ingress` is what clients produce to the partitions of a broker.
    """

    throttle: int | None = None
    network_in: Int64Array | None = None
    network_out: Int64Array | None = None
    ingress: Int64Array | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether anything limits the rate of any broker, so that times are known."""
        known = (each is not None and bool((each >= 0).any()) for each in (self.network_in, self.network_out))
        return self.throttle is not None or any(known)


@attrs.frozen(kw_only=True, eq=False)
class Times:
    """Hold each broker's seconds for receiving and sending, float64[B]; infinite if it never ends."""

    seconds_in: FloatArray
    seconds_out: FloatArray

    @property
    def seconds(self) -> float:
        """Return the time of the slowest link; 0 without brokers."""
        return float(max(self.seconds_in.max(initial=0.0), self.seconds_out.max(initial=0.0)))


def copy_rates(plan: Reassignment, links: Links, moves: Moves | None = None) -> Rates:
    """Return what is left for copying on each link while a plan runs, bytes a second; 0 where nothing is left."""
    count = plan.view.broker_ids.size
    traffic_in, traffic_out = _traffic(plan, links.ingress, moves or Moves.of(plan))
    left_in, left_out = (
        _limit(links.throttle, links.network_in, count),
        _limit(links.throttle, links.network_out, count),
    )
    return Rates(bytes_in=np.maximum(left_in - traffic_in, 0.0), bytes_out=np.maximum(left_out - traffic_out, 0.0))


def times(plan: Reassignment, links: Links, known: Moves | None = None) -> Times | None:
    """Return the time that a plan, started at once, takes on each link; None where no size or no rate is known.

    `known` are the plan's moves, if the caller has them.
    """
    moves = known or Moves.of(plan)
    if not moves.sizes_known or not links.is_limited:
        return None
    rates = copy_rates(plan, links, moves)
    return Times(
        seconds_in=quotient(moves.bytes_in(), rates.bytes_in), seconds_out=quotient(moves.bytes_out(), rates.bytes_out)
    )


def _limit(throttle: int | None, network: Int64Array | None, count: int) -> FloatArray:
    limit = np.full(count, np.inf if throttle is None else float(throttle))
    return limit if network is None else np.where(network >= 0, np.minimum(limit, network), limit)


def _traffic(plan: Reassignment, ingress: Int64Array | None, moves: Moves) -> tuple[FloatArray, FloatArray]:
    """Return the in-sync traffic that counts against the rates at targets and at leaders, float64[B] each."""
    into, out = np.zeros(moves.broker_count), np.zeros(moves.broker_count)
    held = None if ingress is None else loads(plan.view).brokers.size_bytes
    if ingress is None or held is None:
        return into, out
    rate_of_byte = np.zeros(moves.broker_count)
    np.divide(ingress, held, out=rate_of_byte, where=(held > 0) & (ingress > 0))
    produced = moves.sizes * rate_of_byte[moves.source]
    fetching = np.count_nonzero(plan.current[moves.places] >= 0, axis=1) + moves.counts - 1
    np.add.at(out, moves.source, produced * fetching)
    for column in range(moves.targets.shape[1]):
        is_there = moves.targets[:, column] >= 0
        np.add.at(into, moves.targets[is_there, column], produced[is_there])
    return into, out
