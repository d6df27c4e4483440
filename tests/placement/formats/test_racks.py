"""Racks files: four shapes that are read, and the first mistake named with its line."""

from __future__ import annotations

import pytest

from broker.errors import InputError
from placement.formats.racks import read_racks

WEST_EAST = ((1, "west"), (2, "east"))


@pytest.mark.parametrize(
    "data",
    [
        b'{"1":"west","2":"east"}',
        b'{"rackByBroker":{"1":"west","2":"east"}}',
        b'{"lisbon":{"1":"west","2":"east"}}',
        b'{"1":"north","2":"east","lisbon":{"1":"west"}}',
        b"1,west\n2,east\n",
        b"\xef\xbb\xbfbroker,rack\r\n1, west\r\n# a comment\r\n\r\n2 ,east",
        b"Cluster,Broker,Rack\nlisbon,1,west\nporto,1,south\nlisbon,2,east\n",
        "1,west\n2,east\n".encode("utf-16"),
        b'"broker","rack"\r\n"1","west"\r\n"2" , "east" \r\n',
        b'"lisbon","1",west\n"lisbon",2,"east"\n',
    ],
)
def test_each_shape_gives_the_racks_of_the_cluster(data: bytes) -> None:
    assert read_racks(data, source="racks").for_cluster("lisbon") == WEST_EAST


def test_a_cluster_that_is_not_named_has_only_the_common_racks() -> None:
    racks = read_racks(b'{"1":"north","lisbon":{"1":"west"}}', source="racks")
    assert racks.for_cluster("porto") == ((1, "north"),)


def test_a_quoted_field_holds_commas_and_quotes() -> None:
    racks = read_racks(b'1,"room 2, ""north"""\n', source="racks")
    assert racks.for_cluster("lisbon") == ((1, 'room 2, "north"'),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "racks: the racks file names no broker"),
        (b"1,west\nx,east\n", "racks:2: a broker id is not a whole number from 0 to 2147483647 (found 'x')"),
        (b"1,west\n1,east\n", "racks:2: broker 1 already stands in rack 'west' (found 'east')"),
        (b"1,\n", "racks:1: the rack of broker 1 is not a text of 1 to 249 characters (found '')"),
        (b"1,west,a,b\n", "racks:1: a line of a racks file is broker,rack or cluster,broker,rack (found '1,west,a,b')"),
        (b'{"1":7}', "racks: the rack of broker 1 is not a text of 1 to 249 characters (found '7')"),
        (b'{"1":', "racks:1: the JSON is damaged at column 6: Expecting value"),
        (
            b'1,west\n"2,"east\n',
            "racks:2: the quotes of a field are not closed, or not around the whole of it (found '\"2,\"east')",
        ),
        (
            b"\xff\xfe,\\\x00\n"[1:],
            "racks:1: a broker id is not a whole number from 0 to 2147483647 (found '\\xfe')",
        ),
        (b"[]", "racks: the JSON is not a map of brokers to racks (found '[]')"),
        (b'{"a":' * 50_000, "racks: the JSON is nested too deeply or holds a number too long"),
        (b"4294967296,west", "racks:1: a broker id is not a whole number from 0 to 2147483647 (found '4294967296')"),
    ],
)
def test_the_first_mistake_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_racks(data, source="racks")
    assert str(caught.value) == message
