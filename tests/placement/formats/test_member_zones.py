"""Zones of consumers: a host before a client id, names before beginnings, the longest beginning first."""

from __future__ import annotations

import pytest

from broker.errors import InputError
from placement.formats.member_zones import read_member_zones

FILE = b"""# consumers
host,zone
10.1.*,west
/10.1.0.7,north
billing-1,south
billing-*,east
billing-2*,"far, east"
stage,10.1.0.7,lab
"""


@pytest.mark.parametrize(
    ("cluster", "host", "client_id", "zone"),
    [
        ("prod", "10.1.0.7", "billing-1", "north"),
        ("prod", "10.1.0.8", "billing-1", "south"),
        ("prod", "10.1.0.8", "billing-3", "east"),
        ("prod", "10.1.0.8", "billing-22", "far, east"),
        ("prod", "10.1.0.8", "other", "west"),
        ("prod", "10.2.0.8", "other", None),
        ("stage", "10.1.0.7", "billing-1", "lab"),
        ("stage", "10.1.0.8", "billing-1", "south"),
    ],
)
def test_the_zone_of_a_member(cluster: str, host: str, client_id: str, zone: str | None) -> None:
    assert read_member_zones(FILE, source="z").zone_of(cluster, host, client_id) == zone


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            b"a,b\nhost\n",
            "z:2: a line of a zones file is host,zone or client id,zone, or these after a cluster (found 'host')",
        ),
        (b"a,\n", "z:1: a line of a zones file is host,zone or client id,zone, or these after a cluster (found 'a,')"),
        (b"a,east\na,west\n", "z:2: 'a' is in zone 'east' already (found 'west')"),
        (b"# nothing\n", "z: the zones file names no host and no client"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(data: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_member_zones(data, source="z")
    assert str(caught.value) == sentence
