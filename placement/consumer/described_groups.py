"""Put the groups of a cluster together from what kafka-consumer-groups --describe printed, in one file or several.

What a member holds is in --members --verbose, else in the rows of --offsets that name it. Members are taken to
subscribe to every topic that a member of their group holds or is to get, as subscriptions are not printed.

Source: ConsumerGroupCommand, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from broker.ids import TopicPartition
from placement.consumer.group import NO_GENERATION, Member
from placement.formats.group_tables import GroupTables, OffsetRow
from placement.formats.group_text import MemberRow
from placement.formats.member_zones import MemberZones

GENERATION: Final = 1
"""The generation in which members hold what was printed: one for all, as none is printed."""

_NOT_SAID: Final = (
    "what member {!r} holds is not said; give the output of --members --verbose, or that of --offsets, too"
)


@attrs.frozen(kw_only=True)
class DescribedMember:
    """Hold one member with its subscription and zone; `source` is the file that lists it."""

    group: str
    member: Member
    client_id: str
    host: str
    assignor: str | None
    source: str


@attrs.frozen
class DescribedGroups:
    """Hold the members of a cluster's groups in order of group and id, and its files without what was put aside."""

    members: tuple[DescribedMember, ...]
    tables: tuple[GroupTables, ...]

    def by_group(self) -> Iterator[tuple[str, list[Member]]]:
        """Yield each group that has members, with them."""
        found: dict[str, list[Member]] = {}
        for one in self.members:
            found.setdefault(one.group, []).append(one.member)
        yield from found.items()


def described_groups(
    files: Sequence[GroupTables], *, cluster: str, zones: MemberZones | None = None
) -> DescribedGroups:
    """Return the groups of the files of one cluster, with zones where they are given."""
    kept = _without_doubles(files)
    owners = _by_owner(kept)
    with_offsets = {row.group for file in kept for row in file.offsets}
    verbose = {(row.group, row.member_id) for file in kept for row in file.members if row.held is not None}
    found: dict[str, dict[str, tuple[MemberRow, str]]] = {}
    tables = []
    for file in kept:
        faults: dict[int, str] = {}
        for row in file.members:
            if row.held is None and (row.group, row.member_id) in verbose:
                continue  # The other row says more.
            held = row.held
            if held is None and row.group in with_offsets:
                held = _partitions(owners.get((row.group, row.member_id), ()))
            if held is None:
                faults[row.line] = _NOT_SAID.format(row.member_id)
            else:
                listed = attrs.evolve(row, held=held)
                found.setdefault(row.group, {})[listed.member_id] = (listed, file.source)
        tables.append(file.without(faults))
    for (group, member_id), rows in owners.items():
        known = found.setdefault(group, {})
        if member_id not in known:
            first, source = rows[0]
            client_id, host = first.client_id or "", first.host or ""
            listed = MemberRow(
                group=group,
                member_id=member_id,
                client_id=client_id,
                host=host,
                held=_partitions(rows),
                line=first.line,
            )
            known[member_id] = (listed, source)
    assignors = {row.group: row.assignor for file in kept for row in file.states}
    return DescribedGroups(tuple(_members(found, assignors, cluster, zones)), tuple(tables))


def _without_doubles(files: Sequence[GroupTables]) -> list[GroupTables]:
    """Return the files without the rows that an earlier file has already."""
    seen: dict[Hashable, str] = {}
    kept = []
    for file in files:
        keyed: list[tuple[int, Hashable]] = [
            *((row.line, ("member", row.group, row.member_id, row.held is None)) for row in file.members),
            *((row.line, ("offset", row.group, row.topic, row.partition)) for row in file.offsets),
            *((row.line, ("state", row.group)) for row in file.states),
        ]
        faults = {
            line: f"is listed in {seen[key]}, too"
            for line, key in keyed
            if seen.setdefault(key, file.source) != file.source
        }
        kept.append(file.without(faults))
    return kept


def _by_owner(files: Sequence[GroupTables]) -> dict[tuple[str, str], list[tuple[OffsetRow, str]]]:
    owners: dict[tuple[str, str], list[tuple[OffsetRow, str]]] = {}
    for file in files:
        for row in file.offsets:
            if row.member_id is not None:
                owners.setdefault((row.group, row.member_id), []).append((row, file.source))
    return owners


def _partitions(rows: Sequence[tuple[OffsetRow, str]]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(row.topic, row.partition) for row, _ in rows)


def _members(
    found: Mapping[str, Mapping[str, tuple[MemberRow, str]]],
    assignors: Mapping[str, str | None],
    cluster: str,
    zones: MemberZones | None,
) -> Iterator[DescribedMember]:
    for group in sorted(found):
        listed = found[group]
        topics = tuple(
            sorted({one.topic for each, _ in listed.values() for one in (*(each.held or ()), *(each.target or ()))})
        )
        for member_id in sorted(listed):
            one, source = listed[member_id]
            member = Member(
                id=member_id,
                topics=topics,
                instance_id=one.instance_id,
                rack=None if zones is None else zones.zone_of(cluster, one.host, one.client_id),
                owned=one.held or (),
                generation=GENERATION if one.held else NO_GENERATION,
            )
            yield DescribedMember(
                group=group,
                member=member,
                client_id=one.client_id,
                host=one.host,
                assignor=assignors.get(group),
                source=source,
            )
