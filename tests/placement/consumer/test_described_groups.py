"""Groups are put together from members, offsets and states, in one file or several."""

from __future__ import annotations

from itertools import permutations

import pytest

from placement.consumer.described_groups import DescribedGroups, described_groups
from placement.consumer.group_spec import read_previous
from placement.formats.group_tables import read_group_tables
from placement.formats.member_zones import read_member_zones
from tests.placement.formats.samples import PRINTED
from tests.placement.formats.test_group_tables import printed

IDLE = """
GROUP    CONSUMER-ID HOST       CLIENT-ID #PARTITIONS
nightly  a           /10.0.0.1  n-1       1
nightly  b           /10.0.0.2  n-2       0
"""
READ = """
GROUP    TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID
nightly  audit  0          5               9               4    a            /10.0.0.1  n-1
nightly  old    0          5               5               0    -            -          -
"""


def groups(*texts: str, zones: str | None = None) -> DescribedGroups:
    files = [read_group_tables(text, source=f"{place}.txt") for place, text in enumerate(texts)]
    read = None if zones is None else read_member_zones(zones.encode(), source="zones")
    return described_groups(files, cluster="prod", zones=read)


def plain(found: DescribedGroups) -> list[tuple[object, ...]]:
    return [
        (one.group, one.member.id, one.member.topics, set(one.member.owned), one.client_id, one.host)
        for one in found.members
    ]


@pytest.mark.parametrize(
    "forms", [("offsets",), ("offsets-verbose",), ("members", "offsets"), *permutations(("members", "members-verbose"))]
)
def test_who_holds_what_is_the_same_in_every_form(forms: tuple[str, ...]) -> None:
    expected = plain(groups(printed("members-verbose")))
    assert [row[:2] for row in expected] == sorted(row[:2] for row in expected)
    assert plain(groups(*map(printed, forms))) == expected


def test_states_name_the_assignor_of_a_group() -> None:
    found = groups(printed("state"), printed("members-verbose"))
    assert {one.group: one.assignor for one in found.members} == {"billing group": "range", "new-protocol": "uniform"}
    assert {one.assignor for one in groups(printed("members-verbose")).members} == {None}


def test_a_member_without_partitions_subscribes_to_what_its_group_holds() -> None:
    """Members without partitions are in no row of offsets; a topic that nobody holds is none that is subscribed to."""
    for texts in permutations((IDLE, READ)):
        first, second = groups(*texts, zones="10.0.0.2,west\n").members
        assert [str(one) for one in first.member.owned] == ["audit-0"]
        assert (first.member.generation, second.member.generation) == (1, -1)
        assert (first.member.topics, second.member.topics, second.member.owned) == (("audit",), ("audit",), ())
        assert (first.member.rack, second.member.rack) == (None, "west")


def test_members_alone_are_put_aside_since_nothing_says_what_they_hold() -> None:
    found = groups(IDLE)
    assert found.members == ()
    (account,) = (one.account for one in found.tables)
    assert (account.rows_in, account.rows_analysed, account.rows_rejected) == (2, 0, 2)
    assert [reject.line for reject in account.rejects] == [3, 4]
    assert account.rejects[0].reason == (
        "what member 'a' holds is not said; give the output of --members --verbose, or that of --offsets, too"
    )


def test_what_two_files_list_counts_once() -> None:
    found = groups(READ, READ, IDLE)
    assert len(found.members) == 2
    assert [one.account.rows_rejected for one in found.tables] == [0, 2, 0]
    assert found.tables[1].account.rejects[0].reason == "is listed in 0.txt, too"


def test_targets_are_subscribed_to_before_they_are_held() -> None:
    text = printed("members-verbose").replace(
        "orders:2,3,4,5                      3", "-                                   2", 1
    )
    text = text.replace("n-1             4 ", "n-1             0 ", 1)
    members = [one.member for one in groups(text).members if one.group == "new-protocol"]
    assert [len(member.owned) for member in members] == [5, 0]
    assert members[1].topics == ("eu-west-1.payments", "orders")


@pytest.mark.parametrize("name", ["groups-offsets.txt", "groups-offsets-verbose.txt"])
def test_a_groups_id_may_have_blanks(name: str) -> None:
    """What 4.3.1 printed of the group "billing group": two members with five and four partitions."""
    lines = (PRINTED / name).read_text(encoding="utf-8").splitlines()
    of_group = [line for line in lines if line.startswith(("GROUP ", "billing group "))]
    previous = read_previous("\n".join(of_group).encode(), source=name)
    assert sorted((member[:3], len(held)) for member, held in previous.held.items()) == [("b-1", 4), ("sta", 5)]
    assert {one.topic for held in previous.held.values() for one in held} == {"orders", "eu-west-1.payments"}
