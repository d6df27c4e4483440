"""Define the limits that both jobs and report apply, and refuse clusters of which not every partition is listed."""

from __future__ import annotations

from typing import Final

from broker.cluster import ClusterView
from broker.errors import UsageError

DETAILED_CLUSTERS_MAX: Final = 200
"""Clusters that the report shows in full, by rank: what keeps the page of any fleet within some megabytes. The jobs
count pairs of brokers for these."""

ROWS_MAX: Final = 5_000
"""Clusters, by rank, that have a row on the page: about a megabyte. Of a simulated fleet the others
are only counted."""

VIOLATIONS_MAX: Final = 100
"""Violations of each kind that are listed of one cluster."""

PLANNED_PARTITIONS_MAX: Final = 200_000
"""Partitions of one cluster up to which a report of dumps makes plans and a restart schedule: at most three seconds.
Above, `brokerside plan` and `brokerside roll` do, when they are wanted."""

UNPLANNED: Final = f"more than {PLANNED_PARTITIONS_MAX:,} partitions are left to the command"
"""Why a cluster above that limit has no plan."""

SCHEDULED_BROKERS_MAX: Final = 200
"""Brokers of one cluster up to which a report of dumps makes a restart schedule: about a second of CPU."""

BYTES_TOLERANCE_PERCENT: Final = 5
"""How far from the mean a report of dumps plans the bytes of each broker, in percent of the mean."""

OUTAGE_BROKERS_MAX: Final = 4_096
"""Brokers of one cluster up to which a report of dumps looks for the worst outage: 70 MB of takeovers."""


def check_listed(view: ClusterView, unknown: str) -> None:
    """Raise UsageError for a cluster of which not every partition is listed; `unknown` says what follows from it."""
    if view.wholeness.refusal is not None:
        raise UsageError(f"cluster {view.name!r}: {view.wholeness.refusal}, so that {unknown}")
