"""Plans read in columns are what Python's json finds in them, or are left to it."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from broker.cluster import ClusterView
from broker.errors import NothingUsableError
from placement.formats import plans
from placement.formats.plan_columns import plan_columns
from placement.formats.plan_files import reassignment_json
from placement.formats.plans import read_plan
from tests.placement.planning.cases import random_plan, random_view

TWO = (
    b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2],"log_dirs":["any","any"]},'
    b'{"topic":"u-1","partition":12,"replicas":[7],"log_dirs":["any"]}]}'
)


def in_columns(data: bytes) -> list[tuple[str, int, list[int]]] | None:
    found = plan_columns(data)
    if found is None:
        return None
    each = zip(found.topic.tolist(), found.partition.tolist(), found.replicas.tolist(), strict=True)
    return [(found.topics[topic], number, [one for one in row if one != -1]) for topic, number, row in each]


def by_json(data: bytes) -> list[tuple[Any, Any, Any]] | None:
    """Return the entries of a plain plan, None for any other text."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    try:
        value = json.loads(data, object_pairs_hook=once)
        assert value.keys() == {"version", "partitions"}
        assert type(value["version"]) is int
        assert value["version"] == 1
        entries = []
        for each in value["partitions"]:
            assert {"topic", "partition", "replicas"} <= each.keys() <= {"topic", "partition", "replicas", "log_dirs"}
            assert each.get("log_dirs") in (None, ["any"] * len(each["replicas"]))
            assert [type(one) for one in (each["topic"], each["partition"])] == [str, int]
            assert {type(one) for one in each["replicas"]} == {int}
            entries.append((each["topic"], each["partition"], each["replicas"]))
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
        return None
    return entries


def test_a_plan_as_kafka_writes_it_becomes_columns() -> None:
    assert in_columns(TWO) == [("t", 0, [3, 2]), ("u-1", 12, [7])]


@pytest.mark.parametrize("seed", range(20))
def test_every_plan_that_is_written_here_becomes_columns(seed: int) -> None:
    chance = random.Random(seed)
    data = reassignment_json(random_plan(chance, random_view(chance))).encode()
    assert in_columns(data) == by_json(data) is not None
    assert in_columns(re.sub(rb',"log_dirs":\[[^]]*\]', b"", data)) == by_json(data)
    assert in_columns(b" \n" + data + b"\r\n") == by_json(data)


@pytest.mark.parametrize("part", range(8))
def test_a_text_with_any_letter_changed_gives_what_json_finds_or_nothing(part: int) -> None:
    letters = b'{}[],:" \n\r\t0179-.eEnulltrue\\a/\x00\xc3'
    for place in range(part, len(TWO), 8):
        texts = [TWO[:place] + TWO[place + 1 :], TWO[:place] + TWO[place : place + 1] + TWO[place:]]
        for letter in letters:
            one = bytes([letter])
            texts += [TWO[:place] + one + TWO[place + 1 :], TWO[:place] + one + TWO[place:]]
        for text in texts:
            found = in_columns(text)
            assert found is None or found == by_json(text), text


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace(b"},{", b"}{"),
        TWO.replace(b"},{", b"} {"),
        TWO.replace(b"},{", b"}\n{"),
        TWO.replace(b"},{", b"},,{"),
        TWO.replace(b'"u-1"', b'"u},{1"').replace(b'"]},{', b'"]}{'),
        TWO.replace(b'"partition":0', b'"partition":0,"partition":0'),
        TWO.replace(b'"version":1', b'"version":2'),
        TWO.replace(b"[3,2]", b"[3,null]"),
        TWO.replace(b"[3,2]", b"null"),
        TWO.replace(b'"t"', b"null"),
        TWO.replace(b'"partition":0', b'"partition":null'),
        TWO.replace(b'"partition":0,', b""),
        TWO.replace(b"[3,2]", b"[]").replace(b'["any","any"]', b"[]"),
        TWO.replace(b"[3,2]", b"[3,2147483648]"),
        TWO.replace(b'["any","any"]', b'["any"]'),
        TWO.replace(b'["any","any"]', b'["any","/d"]'),
        TWO.replace(b'["any","any"]', b"null"),
        TWO.replace(b'"partition":0', b'"partition":0,"note":1'),
        TWO.replace(b'"t"', '"ü"'.encode()),
        TWO + TWO,
        TWO + b"\n" + TWO,
        b'{"version":1,"partitions":[]}',
        b"[]",
        b"",
    ],
)
def test_what_needs_a_second_look_is_left_to_json(text: bytes) -> None:
    assert plan_columns(text) is None


def answer(text: bytes, view: ClusterView) -> tuple[object, ...]:
    try:
        found = read_plan([text], source="plan.json", view=view)
    except NothingUsableError as error:
        return (str(error),)
    plan = found.reassignment
    counts = (found.rows_in, found.rows_analysed, found.unchanged_count, found.stale_count)
    return plan.rows.tolist(), plan.replicas.tolist(), plan.log_dirs, counts, [each.reason for each in found.rejects]


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_is_read_in_columns_as_it_is_entry_by_entry(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    view = random_view(chance)
    entries = json.loads(reassignment_json(random_plan(chance, view)))["partitions"]
    for each in entries if seed % 2 else ():
        del each["log_dirs"]
    place = chance.randrange(len(entries))
    spoiled = dict(entries[place])
    twice = spoiled["replicas"][:1] * 2
    faults = [{}, {"topic": "gone"}, {"partition": 9_999}, {"replicas": twice}, {"replicas": [9_999]}]
    spoiled |= faults[seed % 5]
    spoiled["log_dirs"] = ["any"] * len(spoiled["replicas"])
    if seed % 2:
        del spoiled["log_dirs"]
    # Without a fault of its own, an entry is there twice.
    other = [*entries, spoiled] if seed % 5 == 0 else [*entries[:place], spoiled, *entries[place + 1 :]]
    for listed in (entries, other):
        text = json.dumps({"version": 1, "partitions": listed}, separators=(",", ":")).encode()
        monkeypatch.setattr(plans, "COLUMNS_BYTES_MIN", 1 << 30)
        one_by_one = answer(text, view)
        monkeypatch.setattr(plans, "COLUMNS_BYTES_MIN", 0)
        assert answer(text, view) == one_by_one


def test_a_large_plan_makes_no_object_for_each_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    view = random_view(chance)
    text = reassignment_json(random_plan(chance, view)).encode()
    monkeypatch.setattr(plans, "COLUMNS_BYTES_MIN", len(text))
    monkeypatch.setattr(plans, "_read_entries", lambda *_: pytest.fail("read entry by entry"))
    assert read_plan([text], source="plan.json", view=view).rows_rejected == 0
