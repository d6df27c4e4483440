"""Define the objects that the page is built from.

Constraints: no field holds markup, no field holds a time of day; None means that the input does not say.

How: a `ClusterRow` is one line of the overview, a `ClusterDetail` is one cluster shown in full, a `Report` is the
page. What the tables hold stands in `report.rows`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import Final, Generic, Literal, TypeVar

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.balance.measures import TOLERANCE
from spark_analysis.answers.registry import Asked
from spark_analysis.report.answers import Answered
from spark_analysis.report.rest import Rest
from spark_analysis.report.rows import (
    BrokerLoad,
    ClusterFacts,
    InputCount,
    LeastPlan,
    LogDir,
    PartitionChange,
    RackLoad,
    RecoveryStep,
    Reject,
    RestartBatches,
    Spread,
    TopicSpread,
    Violation,
    WorstOutage,
)

QUANTITIES: Final = ("replicas", "leaders", "bytes")
SCOPES: Final = ("broker", "rack", "topic")
_FOLDER_LENGTH_MAX: Final = 60
_NOT_IN_FOLDERS: Final = re.compile(r"[^A-Za-z0-9._]+")

Row_co = TypeVar("Row_co", covariant=True)


@attrs.frozen
class GivenInput:
    """Hold the arguments by which a command line names one input: its DUMP, and the options that complete it.

    `name` is what the input is called. In a report on moments, `cluster` is the name of its cluster, `moment` when it
    was dumped, and `missed` a later moment at which other clusters were.
    """

    name: str
    dump: str
    options: tuple[str, ...] = ()
    cluster: str | None = None
    moment: str | None = None
    missed: str | None = None

    @cached_property
    def folder(self) -> str:
        """Return the name as the beginning of the names of folders; it may be empty."""
        return _NOT_IN_FOLDERS.sub("-", self.name)[:_FOLDER_LENGTH_MAX].strip("-.")


@attrs.frozen(kw_only=True)
class RunInfo:
    """Hold the command, the recipe, the seed and the version that repeat the run.

    `tolerance` is the share of a quantity, 0 to 1, that may have to move before a cluster is called uneven. `given` are
    the inputs by number; the clusters of input i of n have the numbers i, n + i, and so on. `asked` are questions of
    `--ask`. `out` is the folder of the report, as the command line names it. `grouping` says how inputs were taken as
    moments of clusters. `skipped` are what folders hold that was not read; None if no folder was given.
    """

    kind: Literal["fleet", "dumps"]
    title: str
    command: str
    version: str
    recipe_text: str | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    tolerance: float = TOLERANCE
    given: tuple[GivenInput, ...] = ()
    asked: tuple[Asked, ...] = ()
    out: str = ""
    grouping: str | None = None
    skipped: tuple[str, ...] | None = None

    @cached_property
    def folder_counts(self) -> Counter[str]:
        """Return how many inputs have each folder."""
        return Counter(one.folder for one in self.given)


@attrs.frozen
class Advice:
    """Hold what to do next with one cluster; empty for a simulated one, for the past, and for a part of a cluster."""

    plans: tuple[LeastPlan, ...] = ()
    outages: tuple[WorstOutage, ...] = ()
    restarts: RestartBatches | None = None
    recovery: tuple[RecoveryStep, ...] = ()


@attrs.frozen
class Spreads:
    """Hold the spreads of one cluster over its brokers."""

    replicas: Spread | None = None
    leaders: Spread | None = None
    bytes: Spread | None = None

    def of(self, quantity: str) -> Spread | None:
        """Return the spread of replicas, leaders or bytes; None if the input does not contain them."""
        assert quantity in QUANTITIES, quantity
        found: Spread | None = getattr(self, quantity)
        return found


@attrs.frozen
class ClusterRow:
    """Hold one cluster as placed by one placer: its facts, its spreads over brokers, and its worst finding in words.

    `place` is its place in the report, from 1: the rank, with ties broken by number and placer.
    """

    place: int
    facts: ClusterFacts
    over_brokers: Spreads
    worst: str
    healthy: bool

    @property
    def anchor(self) -> str:
        """Return the identifier of the cluster's place on the page, made of our numbers and of no text from outside."""
        return f"cluster-{self.place}"


@attrs.frozen(eq=False)
class PairCounts:
    """Hold the partitions shared by pairs of brokers: three columns of equal length."""

    broker_ids: Int32Array = attrs.field(factory=lambda: np.empty(0, dtype=np.int32))
    other_broker_ids: Int32Array = attrs.field(factory=lambda: np.empty(0, dtype=np.int32))
    shared_counts: Int64Array = attrs.field(factory=lambda: np.empty(0, dtype=np.int64))


@attrs.frozen
class ShortenedList(Generic[Row_co]):
    """Hold the first rows of a longer list, and the length of the whole list in `count`."""

    count: int
    rows: tuple[Row_co, ...]


@attrs.frozen(kw_only=True)
class ClusterDetail:
    """Hold one cluster shown in full; `violations` has one entry per constraint, sorted by name."""

    row: ClusterRow
    spreads: tuple[Spread, ...]
    brokers: tuple[BrokerLoad, ...]
    racks: tuple[RackLoad, ...]
    topics: ShortenedList[TopicSpread]
    violations: tuple[ShortenedList[Violation], ...]
    pairs: PairCounts
    log_dirs: ShortenedList[LogDir] = ShortenedList(0, ())
    advice: Advice = Advice()


@attrs.frozen
class DumpComparison:
    """Hold the changes between two successive dumps of one cluster; `kinds` has one entry per kind of change."""

    from_cluster: str
    to_cluster: str
    kinds: tuple[ShortenedList[PartitionChange], ...]


@attrs.frozen(kw_only=True)
class Report:
    """Hold all values of the page: `rows` in order of rank, and `details` of the first of them.

    `rest` are the clusters of a large fleet that rank after `rows`: what counts clusters counts both. `unusable` are
    the inputs of which nothing could be used.
    `lists_partitions` tells whether the table of partitions has rows.
    """

    run: RunInfo
    rows: tuple[ClusterRow, ...]
    details: tuple[ClusterDetail, ...]
    inputs: ShortenedList[InputCount]
    rows_in: int
    rows_analysed: int
    rows_rejected: int
    rejects: ShortenedList[Reject]
    changes: tuple[DumpComparison, ...]
    lines_passed_over: int = 0
    unusable: ShortenedList[InputCount] = ShortenedList(0, ())
    lists_partitions: bool = False
    rest: Rest = attrs.field(factory=Rest)
    answers: tuple[Answered, ...] = ()

    @property
    def row_count(self) -> int:
        """Return the number of rows of the table of clusters."""
        return len(self.rows) + self.rest.count

    @property
    def current_count(self) -> int:
        """Return the number of those of the present."""
        return len(self.current_rows) + self.rest.count

    def given_of(self, row: ClusterRow) -> GivenInput | None:
        """Return how the input of a cluster was given; None for a simulated one, or where the report does not know."""
        given = self.run.given
        return given[row.facts.cluster_id % len(given)] if given else None

    @property
    def placers(self) -> tuple[str, ...]:
        """Return the names of all placers of the report, sorted."""
        return tuple(sorted({row.facts.placer for row in self.rows} | self.rest.placers))

    @property
    def shapes(self) -> frozenset[str | None]:
        """Return the shapes of the recipe that clusters have; None is in it if a cluster has none."""
        return frozenset(row.facts.shape for row in self.rows) | self.rest.values("shape")

    @cached_property
    def current_rows(self) -> tuple[ClusterRow, ...]:
        """Return the rows of the present: of successive dumps of one cluster only the last."""
        earlier = self._earlier_ids()
        return tuple(row for row in self.rows if row.facts.cluster_id not in earlier)

    @cached_property
    def current_count_by_input(self) -> Counter[int]:
        """Return how many of these rows are clusters of each input, by its place in `run.given`."""
        return Counter(row.facts.cluster_id % len(self.run.given) for row in self.current_rows)

    @property
    def earlier_rows(self) -> tuple[ClusterRow, ...]:
        """Return the rows of the past, by rank."""
        earlier = self._earlier_ids()
        return tuple(row for row in self.rows if row.facts.cluster_id in earlier)

    @property
    def moments(self) -> tuple[ClusterRow, ...]:
        """Return the rows of successive dumps, those of one cluster together, in their order."""
        by_id = {row.facts.cluster_id: row for row in self.rows}
        chains = []
        for last in self.current_rows:
            chain, place = [last], last.facts.previous_cluster_id
            while place is not None and place in by_id and len(chain) <= len(by_id):
                chain.append(by_id[place])
                place = by_id[place].facts.previous_cluster_id
            chains.append(chain[::-1])
        ordered = sorted((chain for chain in chains if len(chain) > 1), key=lambda chain: chain[0].facts.cluster_id)
        return tuple(row for chain in ordered for row in chain)

    def _earlier_ids(self) -> frozenset[int | None]:
        return frozenset(row.facts.previous_cluster_id for row in self.rows)

    @property
    def cluster_count(self) -> int:
        """Return the number of clusters; a cluster with several placers or dumps counts once."""
        held = np.array([row.facts.cluster_id for row in self.current_rows], dtype=np.int64)
        return int(np.unique(np.concatenate((held, self.rest.cluster_ids))).size)
