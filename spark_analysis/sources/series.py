"""Decide which dumps are moments of one cluster, and in which order they were taken.

What it decides: with dates or numbers in the names of the files, dumps whose names are equal without them are one
cluster; so are metadata logs whose meta.properties has one cluster.id. Dumps whose names have neither belong, in their
order, to the cluster before them with which they share topics. A cluster that is not there any more while another one
begins is taken as renamed if most topics are in both. Where the topics of a later dump are all others, it is a cluster
of its own. A topic of one name and two ids is not shared.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from broker.cluster import ClusterView
from broker.errors import BrokersideError
from broker.wording import encodable
from log.storage.metadata_files import META_PROPERTIES_FILE, METADATA_BYTES_MAX, parse_meta_properties
from spark_analysis.sources.dated_names import NamedMoment, of_path
from spark_analysis.sources.dumps import BY_NAME, DumpInput
from spark_analysis.sources.files import read_small_file

IN_ORDER: Final = "moments"  # The series of dumps of which nothing but their order says when they were taken.
BY_LISTING: Final = "names"  # The series of dumps of one folder or pattern that are in order of their names alone.
_RENAMED: Final = "renamed"  # The series of clusters that end or begin before the last moment.

_GIVEN: Final = "in the order given"
_ORDERS: Final[dict[str | None, str]] = {IN_ORDER: _GIVEN, BY_LISTING: "in the order of their names"}


@attrs.define
class _Group:
    """Hold the dumps of one cluster, in order of time, with their places among the arguments."""

    key: str
    members: list[tuple[NamedMoment, int]]
    successor_of: tuple[str, ...] = ()
    missed: str | None = None

    @property
    def first(self) -> datetime | None:
        return self.members[0][0].time

    @property
    def last(self) -> datetime | None:
        return self.members[-1][0].time

    def take(self, inputs: Sequence[DumpInput], series: str) -> list[DumpInput]:
        """Return the dumps of the group as moments of its cluster."""
        taken = [
            attrs.evolve(
                inputs[place],
                series=series,
                cluster=self.key,
                moment=named.label,
                successor_of=self.successor_of if named is self.members[0][0] else (),
            )
            for named, place in self.members
        ]
        return [*taken[:-1], attrs.evolve(taken[-1], missed=self.missed)]


def as_moments(inputs: Sequence[DumpInput], given_names: Sequence[str | None]) -> tuple[DumpInput, ...]:
    """Return the inputs as moments of clusters, those of a cluster together in order of time.

    Inputs of which neither names nor logs say when they were taken are left as they are, a series in their order.
    `given_names` are the names that the user gave to some of them, which stand for those of their files.
    """
    named = _named(inputs, given_names)
    ids = [_cluster_id(dump.path) for dump in inputs]
    if not any(ids) and all(one.time is None and one.number is None for one in named):
        return tuple(inputs)
    groups = _groups(named, ids)
    _look_for_gaps(groups)
    older = {key for group in groups for key in group.successor_of}
    pooled = [group for group in groups if group.successor_of or group.key in older]
    together = {id(group): [group] for group in groups if group not in pooled} | {id(one): pooled for one in pooled[:1]}
    taken = []
    for one in (together[id(group)] for group in groups if id(group) in together):
        of_one = [
            (named.order, dump)
            for group in one
            for (named, _), dump in zip(
                group.members, group.take(inputs, _RENAMED if one is pooled else group.key), strict=True
            )
        ]
        taken += [dump for _, dump in sorted(of_one, key=lambda pair: pair[0])]
    return tuple(taken)


def _named(inputs: Sequence[DumpInput], given_names: Sequence[str | None]) -> list[NamedMoment]:
    """Return what the names say, read below the folder that holds all files, and from the year on if it is a date."""
    paths = [Path(dump.path).absolute() for dump in inputs]
    top = Path(os.path.commonpath([path.parent for path in paths]))
    while top.name.isdecimal() and len(top.name) <= len("2026"):
        top = top.parent
    found = []
    for path, name in zip(paths, given_names, strict=True):
        text = path.relative_to(top).as_posix() if name is None else name
        one = of_path(encodable(text), has_ending=name is None and not path.is_dir())
        found.append(one if one.cluster else attrs.evolve(one, cluster=top.name or "cluster"))
    return found


def _groups(named: Sequence[NamedMoment], ids: Sequence[str | None]) -> list[_Group]:
    """Return the clusters in order of their first dumps: those of one cluster.id, or of one name."""
    ids_of: dict[str, set[str]] = {}
    for one, cluster_id in zip(named, ids, strict=True):
        ids_of.setdefault(one.cluster, set()).update(filter(None, [cluster_id]))
    members: dict[tuple[str, str], list[tuple[NamedMoment, int]]] = {}
    for place, (one, cluster_id) in enumerate(zip(named, ids, strict=True)):
        known = cluster_id or (next(iter(ids_of[one.cluster])) if len(ids_of[one.cluster]) == 1 else None)
        key = ("name", one.cluster) if known is None else ("id", known)
        members.setdefault(key, []).append((one, place))
    groups = []
    for (kind, cluster), found in members.items():
        found.sort(key=lambda member: (member[0].order, member[1]))
        name = found[-1][0].cluster
        is_alone = sum(1 for other in members.values() if any(one.cluster == name for one, _ in other)) == 1
        groups.append(_Group(name if kind == "name" or is_alone else f"{name} ({cluster})", found))
    return groups


def _look_for_gaps(groups: Sequence[_Group]) -> None:
    """Set of each cluster which moment it missed at the end, and which clusters ended before it began.

    A cluster missed the last moment if its own last one is earlier by half the shortest time between two dumps of a
    cluster or, where no cluster has two times, by a day.
    """
    times = [one.last for one in groups if one.last is not None]
    gaps = [
        after - before
        for group in groups
        for before, after in pairwise(one.time for one, _ in group.members if one.time is not None)
        if after > before
    ]
    shortest = min(gaps, default=timedelta(days=2))
    latest = max(times, default=None)
    last_label = next((one.members[-1][0].label for one in groups if latest is not None and one.last == latest), None)
    for group in groups:
        if group.last is not None and latest is not None and latest - group.last >= shortest / 2:
            group.missed = last_label
    for group in groups:
        if (first := group.first) is not None:
            ended = [one for one in groups if one.missed and one.last is not None and one.last < first]
            group.successor_of = tuple(one.key for one in ended)


def _cluster_id(path: str) -> str | None:
    """Return the cluster.id in the meta.properties beside a metadata log; None for a dump, or where there is none."""
    place = Path(path)
    for folder in (place, place.parent) if place.is_dir() else ():
        properties = folder / META_PROPERTIES_FILE
        try:
            if properties.is_file():
                data = read_small_file(str(properties), size_bytes_max=METADATA_BYTES_MAX)
                return parse_meta_properties(data).cluster_id
        except BrokersideError:
            continue
    return None


def with_short_names(inputs: Sequence[DumpInput], given_names: Sequence[str | None]) -> tuple[DumpInput, ...]:
    """Return the inputs, those whose names have folders by cluster and moment instead where that is unique.

    Names that the user gave stay.
    """
    short = [f"{dump.cluster} {dump.moment or 'now'}" if dump.cluster else None for dump in inputs]
    counts = Counter([*short, *(dump.name for dump in inputs)])
    return tuple(
        attrs.evolve(dump, name=name)
        if name and "/" in (dump.name or "") and dump.name not in given_names and counts[name] == 1
        else dump
        for dump, name in zip(inputs, short, strict=True)
    )


def grouping_of(inputs: Sequence[DumpInput]) -> str | None:
    """Return how inputs were taken as moments of clusters, in words; None where each is a cluster of its own."""
    kinds = {dump.series for dump in inputs}
    if kinds == {None} or len(inputs) == 1:
        return None
    if BY_NAME in kinds:
        return "by the numbers that the file names begin with, and topics in common"
    if order := next((_ORDERS[kind] for kind in kinds if kind in _ORDERS), None):
        return f"{order}, as no file name has a date; clusters by topics in common"
    spans: dict[str, list[str]] = {}
    for dump in inputs:
        spans.setdefault(dump.cluster or "", []).append(dump.moment or "no date")
    ends = {name: dict.fromkeys((moments[0], moments[-1])) for name, moments in spans.items()}
    shown = [f"{name} {' to '.join(moments)}" for name, moments in ends.items()]
    more = f" and {len(shown) - 5:,} more" if len(shown) > 5 else ""
    is_apart = len(spans) == len(inputs) and not any(dump.successor_of for dump in inputs)
    apart = "; each is its own cluster, as no two names are alike but for a date with its year, or a number"
    return (
        f"clusters by the file names, moments by the dates or numbers in them ({', '.join(shown[:5])}{more})"
        f"{apart if is_apart else ''}"
    )


def continued(dump: DumpInput, view: ClusterView, last: Mapping[str, ClusterView]) -> str | None:
    """Return which of the clusters of a series `view`, read of `dump`, shows at a later moment; None for a new one.

    `last` are the views that the clusters had last, in the order in which they were read.
    """
    if dump.series is None:
        return None
    if dump.cluster is not None and dump.cluster in last:
        before = last[dump.cluster]
        return dump.cluster if shared_count(before, view) or not (_topics(before) and _topics(view)) else None
    among = dump.successor_of if dump.cluster is not None else tuple(last)[::-1]
    found = [key for key in among if key in last and _is_like(dump, last[key], view)]
    return max(found, key=lambda key: shared_count(last[key], view), default=None)


def _is_like(dump: DumpInput, before: ClusterView, view: ClusterView) -> bool:
    """Return whether two views are of one cluster by their topics: any in common, or most if the names differ."""
    earlier, later, shared = _topics(before), _topics(view), shared_count(before, view, with_ids=True)
    if dump.cluster is not None:
        return 2 * shared > max(len(earlier), len(later))
    return bool(shared) or not earlier or not later


def shared_count(before: ClusterView, view: ClusterView, *, with_ids: bool = False) -> int:
    """Return how many topics two views have in common: of one name, and `with_ids` of no two ids."""
    earlier, later = _topics(before), _topics(view)
    if not with_ids:
        return len(earlier.keys() & later.keys())
    pairs = [(earlier[name], later[name]) for name in earlier.keys() & later.keys()]
    return sum(1 for before_id, id_now in pairs if before_id is None or id_now is None or before_id == id_now)


def series_note(dump: DumpInput, view: ClusterView, before: ClusterView | None, refused: ClusterView | None) -> str:
    """Return how a dump of a series was taken: after `before`, as another cluster than `refused`, or as the first."""
    named = f"{dump.cluster} at {dump.moment}" if dump.moment else f"{dump.cluster}, without a date"
    if before is not None:
        shared = f"{shared_count(before, view)} of {len(_topics(view))} topics are in both"
        if dump.cluster is not None and not dump.successor_of:
            return f"taken as {named}, after {before.name}: the names are alike but for the moment, and {shared}"
        why = "as the file names are numbered" if dump.series == BY_NAME else _ORDERS.get(dump.series, _GIVEN)
        if dump.successor_of:
            why = f"renamed to {dump.cluster}, as it has no dump that late"
        return (
            f"taken as the cluster of {before.name} at a later moment, {why} and {shared}; "
            "--separate takes them as two clusters"
        )
    if refused is not None:
        why = "the file names are numbered" if dump.series == BY_NAME else "it comes later"
        return f"taken as a cluster of its own: {why}, but no topic of {refused.name} is in it"
    return f"taken as {named}: the first dump of that name" if dump.cluster is not None else ""


def _topics(view: ClusterView) -> dict[str, str | None]:
    """Return the ids of the topics of users by name."""
    return {topic.name: topic.topic_id for topic in view.topics if not topic.name.startswith("__")}
