"""Every question against every bad input: a fault that counts the rows, and all other rows answered as if alone.

A column that is missing or of another type is one sentence before any job runs (test_columns.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark_analysis.frames.test_columns import FUNCTIONS, TABLES, read_of_partitions, taken

Row: TypeAlias = dict[str, Any]
SCHEMAS: Final = {
    "partitions": "cluster string, topic string, partition int, leader int, replicas array<int>, isr array<int>, "
    "racks array<string>, fault string",
    "brokers": "cluster string, broker_id long, rack string, replica_count long, fault string",
    "members": "cluster string, group string, member_id string, topics array<string>, rack string, held array<string>, "
    "fault string",
    "offsets": "cluster string, group string, topic string, partition int, current_offset long, log_end_offset long, "
    "fault string",
    "batches": "cluster string, topic string, partition int, record_count int, magic int, codec string, "
    "size_bytes long, fault string",
    "records": "cluster string, topic string, key binary, value_size_bytes int, fault string",
    "segments": "cluster string, topic string, partition int, base_offset long, source string, fault string",
}
GOOD: Final[dict[str, list[Row]]] = {
    "partitions": [
        {"topic": "t", "partition": number, "leader": replicas[0], "replicas": replicas, "isr": isr,
         "racks": ["a" if broker == 1 else "b" for broker in replicas]}
        for number, replicas, isr in ((0, [2, 1], [2]), (1, [1, 2], [1, 2]), (2, [2, 1], [2, 1]))
    ],
    "brokers": [{"broker_id": 1, "rack": "a", "replica_count": 3}, {"broker_id": 2, "rack": "b", "replica_count": 3},
                {"broker_id": 3, "rack": "b", "replica_count": 0}],
    "members": [{"group": f"g{number}", "member_id": "m", "topics": ["t"], "rack": "a", "held": []}
                for number in range(3)],
    "offsets": [{"group": "g", "topic": "t", "partition": number, "current_offset": 3, "log_end_offset": 5 + number}
                for number in range(3)],
    "batches": [{"topic": "t", "partition": number, "record_count": 1, "magic": 2, "codec": "none", "size_bytes": 70}
                for number in range(3)],
    "records": [{"topic": "t", "key": bytes([number]), "value_size_bytes": 1} for number in range(3)],
    "segments": [{"topic": "t", "partition": number, "base_offset": 0, "source": f"/none/t-{number}/0.log"}
                 for number in range(3)],
}  # fmt: skip
"""The rows of a cluster; a fault changes the last of them."""
ALL: Final = 3
"""Every row of the cluster is rejected: it contradicts itself."""


@attrs.frozen
class Bad:
    """What is wrong in the last row of a cluster, and how many rows that rejects."""

    change: Row
    rejected: int
    fault: str
    doubles: bool = False

    def rows(self, good: list[Row]) -> list[Row]:
        return [*good, good[-1]] if self.doubles else [*good[:-1], good[-1] | self.change]


def nulls(*names: str, fault: str = "1 without {}") -> dict[str, Bad]:
    return {f"no {name}": Bad({name: None}, 1, fault.format(name)) for name in names}


OF_LOGS: Final = "{} is null; allowed is "
CORRUPT: Final = {"corrupt": Bad({"fault": "line 3: cut off"}, 1, "line 3: cut off")}
BAD: Final[dict[str, dict[str, Bad]]] = {
    "partitions": CORRUPT | nulls("topic", "partition", "replicas", "isr") | {
        "null in replicas": Bad({"replicas": [1, None]}, ALL, "a list in column 'replicas' has a null in it"),
        "null in isr": Bad({"isr": [2, None]}, ALL, "a list in column 'isr' has a null in it"),
        "negative replica": Bad({"replicas": [2, -5]}, ALL, "column 'replicas' has the value -5"),
        "leader outside": Bad({"leader": 99}, 1, "Leader 99 is no replica (2,1)"),
        "isr outside": Bad({"isr": [2, 77]}, 1, "isr names broker 77, which is no replica (2,1)"),
        "huge partition": Bad({"partition": 2**31 - 1}, 1, "partition is 2147483647; allowed are"),
        "negative partition": Bad({"partition": -4}, 1, "partition is -4; allowed are"),
        "racks too short": Bad({"racks": ["b"]}, ALL, "column 'racks' has another length"),
        "listed twice": Bad({}, ALL + 1, "partition 2 of topic 't' is listed twice", doubles=True),
    },
    "brokers": {
        "no broker_id": Bad({"broker_id": None}, 0, "1 without broker_id"),
        "broker corrupt": Bad({"fault": "line 9: cut off"}, 0, "line 9: cut off"),
        "broker negative": Bad({"broker_id": -3}, ALL, "broker -3 of cluster"),
        "broker huge": Bad({"broker_id": 2**40}, ALL, "column 'broker_id' has the value 1099511627776"),
        "broker listed twice": Bad({}, ALL, "broker 3 is listed twice", doubles=True),
        "fewer held than listed": Bad({"replica_count": -2}, ALL, "hold 4 replicas in all; its partitions list 6"),
    },
    "members": {f"member {kind}": one for kind, one in CORRUPT.items()} | nulls("group", "member_id", "topics") | {
        "null in topics": Bad({"topics": [None]}, 1, "the list in column 'topics' of member 'm' has a null in it"),
        "null in held": Bad({"held": [None]}, 1, "the list in column 'held' of member 'm' has a null in it"),
        "held nonsense": Bad({"held": ["t-2147483648"]}, 1, "a member holds 't-2147483648'; a partition is "),
    },
    "offsets": CORRUPT | nulls("group", "topic", "partition", fault=OF_LOGS),
    "batches": CORRUPT | nulls("record_count", "magic", "size_bytes", fault=OF_LOGS) | {
        "negative size": Bad({"size_bytes": -1}, 1, "size_bytes is -1; allowed is 0 to"),
    },
    "records": CORRUPT | nulls("value_size_bytes", fault=OF_LOGS) | {
        "negative size": Bad({"value_size_bytes": -5}, 1, "value_size_bytes is -5; allowed is -1 to 2147483647"),
    },
    "segments": CORRUPT | nulls("source", "base_offset", fault=OF_LOGS),
}  # fmt: skip
NAMELESS: Final = "no cluster"
"""Rows of a cluster of its own whose name is null."""
WITH_TOTALS: Final = ("fewer held than listed",)
GIVEN: Final[dict[str, Any]] = {"assignor": "range", "assignors": ["range"], "now_ms": 0, "scope": "broker"}
ASSUMED: Final = {"durability.durability": {"years": 1_000}, "availability.availability": {"draws": 64}}


def is_seen(name: str, kind: str) -> bool:
    """Whether a question reads what is wrong."""
    parameters = FUNCTIONS[name].__kwdefaults__ or {}
    if kind in WITH_TOTALS:
        return "totals" in parameters
    if kind == "no topic" and "members" in taken(name):
        return name == "traffic.clusters"  # It is no partition of any group.
    return kind != "racks too short" or "racks" in read_of_partitions(name)


def asked(name: str, frames: dict[str, DataFrame]) -> list[Row]:
    """The rows of an answer."""
    defaults = {**(FUNCTIONS[name].__kwdefaults__ or {})}
    names = set(FUNCTIONS[name].__annotations__)
    more = {key: value for key, value in (GIVEN | {"totals": True}).items() if key in names}
    if name in ASSUMED:
        more["assume"] = ASSUMED[name]
    assert set(more) <= names | set(defaults)
    return [row.asDict() for row in FUNCTIONS[name](**{one: frames[one] for one in taken(name)}, **more).collect()]


def framed(spark: SparkSession, what: str, rows: Iterable[tuple[str | None, Row]]) -> DataFrame:
    names = [one.split()[0] for one in SCHEMAS[what].split(", ")]
    values = [tuple(({"cluster": cluster} | row).get(name) for name in names) for cluster, row in rows]
    return spark.createDataFrame(values, SCHEMAS[what])


def of_each(name: str, change: Callable[[str, str, list[Row]], list[Row]]) -> dict[str, list[tuple[str | None, Row]]]:
    """The rows of each DataFrame: for each fault a cluster, changed where the fault is, good in the others."""
    found: dict[str, list[tuple[str | None, Row]]] = {}
    for what in taken(name):
        found[what] = [("good", row) for row in GOOD[what]]
        for place in taken(name):
            for kind in BAD[place]:
                if is_seen(name, kind):
                    rows = change(what, kind, GOOD[what]) if what == place else GOOD[what]
                    found[what] += [(kind, row) for row in rows]
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_fault_counts_the_rows_in_no_answer_and_all_others_are_answered(spark: SparkSession, name: str) -> None:
    bad = of_each(name, lambda what, kind, rows: BAD[what][kind].rows(rows))
    for what in bad:
        bad[what] += [(None, row) for row in GOOD[what]]

    def kept(what: str, kind: str, rows: list[Row]) -> list[Row]:
        one = BAD[what][kind]
        return [] if one.rejected >= ALL and what != "brokers" else rows[:-1]

    left = of_each(name, kept)
    answer, expected = (
        asked(name, {what: framed(spark, what, rows) for what, rows in found.items()}) for found in (bad, left)
    )
    kinds = [(what, kind) for what in taken(name) for kind in BAD[what] if is_seen(name, kind)]
    for what, kind in kinds:
        one = BAD[what][kind]
        rows = [row for row in answer if row["cluster"] == kind]
        faults = [row for row in rows if row["fault"] is not None]
        assert any(one.fault in row["fault"] for row in faults), (kind, rows)
        if "rejected_count" in faults[0]:
            counted = sum(row["rejected_count"] or 0 for row in faults)
            of_members = what == "partitions" and "members" in taken(name)  # Rows are rows of members there.
            rejected = (ALL if one.rejected >= ALL else 0) if of_members else one.rejected
            assert counted == rejected or name == "traffic.clusters", (kind, faults)
        good = [row for row in expected if row["cluster"] == kind and one.rejected < ALL]
        assert answers_of(rows) == answers_of(good), kind
    unnamed = [row for row in answer if row["cluster"] is None]
    assert unnamed
    assert all(row["fault"] is not None for row in unnamed)
    of_good = ([row for row in some if row["cluster"] == "good"] for some in (answer, expected))
    one_way, other = (sorted(map(str, rows)) for rows in of_good)
    assert one_way == other != []


def answers_of(rows: list[Row]) -> list[str]:
    """The rows of answers, without what says how many rows are in none; a row of faults alone is left out."""
    said = [{key: value for key, value in row.items() if key not in ("fault", "rejected_count")} for row in rows
            if row["fault"] is None or is_counted(row)]  # fmt: skip
    return sorted(map(str, said))


def is_counted(row: Row) -> bool:
    """Whether a row of logs counts good rows beside those that are rejected."""
    return any(row.get(name) for name in ("record_count", "batch_count", "partition_count"))


def test_every_frame_has_faults() -> None:
    assert set(BAD) == set(GOOD) == set(TABLES) == set(SCHEMAS)
