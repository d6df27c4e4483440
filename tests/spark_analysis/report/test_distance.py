"""The groups of a distribution: by cluster when few, else by shape and placer, each ascending and complete."""

from __future__ import annotations

import attrs

from spark_analysis.report.distance import groups_of
from spark_analysis.report.figures import ppm
from spark_analysis.report.model import Report


def test_a_fleet_is_split_by_shape_and_placer_and_no_cluster_is_lost(fleet: Report) -> None:
    groups = groups_of(fleet, "leaders")
    assert [(group.label, group.sublabel, len(group.values)) for group in groups] == [
        ("classic", "even racks", 24),
        ("striped", "even racks", 24),
        ("classic", "uneven racks", 6),
        ("striped", "uneven racks", 6),
    ]
    shares = [row.over_brokers.leaders.moves_share for row in fleet.rows if row.over_brokers.leaders]
    assert sorted(value for group in groups for value in group.values) == sorted(ppm(share) or 0 for share in shares)


def test_moments_of_one_log_are_named_by_what_differs(dumps: Report) -> None:
    """A label has room for some thirty characters; what all moments share would fill them."""
    names = [f"__cluster_metadata-0 at offset {place}, 2026-11-21T18:29:43.035Z (…)" for place in range(6)]
    named = attrs.evolve(
        dumps,
        rows=tuple(
            attrs.evolve(row, facts=attrs.evolve(row.facts, cluster=names[row.facts.cluster_id])) for row in dumps.rows
        ),
    )
    labels = [group.label for group in groups_of(named, "replicas")]
    assert [label[:9] for label in labels] == [f"offset {place}," for place in range(6)]
    assert groups_of(dumps, "replicas")[0].label == "1-baseline"
    same = tuple(attrs.evolve(row, facts=attrs.evolve(row.facts, cluster="prod")) for row in dumps.rows)
    assert {group.label for group in groups_of(attrs.evolve(dumps, rows=same), "replicas")} == {"prod"}
