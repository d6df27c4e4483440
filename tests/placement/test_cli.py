"""`brokerside assign`, as a user types it: what is printed, refused, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from broker.cli import run
from broker.cluster import BrokerView
from broker.entropy import JavaRandom
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.cli import assign, parse_broker_list
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec

BROKERS = [BrokerView(id=BrokerId(number)) for number in range(6)]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(assign, "assign", list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def replicas(text: str) -> dict[str, list[list[int]]]:
    held: dict[str, list[list[int]]] = {}
    for row in json.loads(text)["partitions"]:
        held.setdefault(row["topic"], []).append(row["replicas"])
    return held


def test_topics_are_placed_one_after_another_on_one_generator(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = printed(capsys, "a:7:3", "b:5:2", "--brokers", "0-5", "--seed", "11")
    entropy = JavaRandom(11)
    expected = {
        name: StripedPlacer().place(PlacementSpec(0, partitions, factor), BROKERS, entropy).tolist()
        for name, partitions, factor in (("a", 7, 3), ("b", 5, 2))
    }
    assert (status, err) == (0, "")
    assert replicas(out) == expected


def test_a_fixed_start_index_is_the_classic_placers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("t:10:3", "--brokers", "0-5", "--placer", "classic", "--start-index", "4")
    status, out, _ = printed(capsys, *arguments)
    assert status == 0
    assert [row[0] for row in replicas(out)["t"]] == [4, 5, 0, 1, 2, 3, 4, 5, 0, 1]
    assert printed(capsys, "t:1:1", "--brokers", "0", "--start-index", "0") == (
        2,
        "",
        "assign: --start-index is for the classic placer; the placer is striped\n",
    )


def test_growing_prints_only_the_partitions_that_are_added(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = ClassicPlacer(fixed_start_index=2).place(PlacementSpec(0, 5, 2), BROKERS, JavaRandom(0))
    today = tmp_path / "today.json"
    rows = [{"topic": "t", "partition": place, "replicas": row} for place, row in enumerate(whole.tolist())]
    today.write_text(json.dumps({"version": 1, "partitions": rows}))
    status, out, _ = printed(capsys, "t:8", "--grow", str(today), "--brokers", "0-5", "--placer", "classic")
    added = json.loads(out)["partitions"]
    expected = ClassicPlacer(fixed_start_index=2).place(PlacementSpec(5, 3, 2), BROKERS, JavaRandom(0))
    assert status == 0
    assert [row["partition"] for row in added] == [5, 6, 7]
    assert np.array_equal([row["replicas"] for row in added], expected)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic t currently has 2 partition(s); 1 would not be an increase."),
    ],
)
def test_a_topic_that_would_not_grow_is_refused_as_the_controller_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, count: int, message: str
) -> None:
    now = tmp_path / "now.json"
    now.write_text(printed(capsys, "t:2:2", "--brokers", "0-3")[1])
    arguments = (f"t:{count}", "--grow", str(now), "--brokers", "0-3")
    assert printed(capsys, *arguments) == (1, "", f"assign: {message}\n")


_LINE = "Topic: t\tPartitionCount: {}\tReplicationFactor: 2\tConfigs: \n"
_ROW = "\tTopic: t\tPartition: {}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"


@pytest.mark.parametrize("placer", ["striped", "classic"])
@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (_LINE.format(0), 0),
        (_LINE.format(2) + _ROW.format(0), 1),
        (_LINE.format(2) + _ROW.format(0) + _ROW.format(10**12), 1),
        (_ROW.format(0) + _ROW.format(2), 1),
    ],
)
def test_a_topic_of_which_a_partition_is_not_listed_is_not_grown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, placer: str, text: str, missing: int
) -> None:
    now = tmp_path / "now.txt"
    now.write_text(text)
    status, out, err = printed(capsys, "t:4", "--grow", str(now), "--brokers", "1-2", "--placer", placer)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == f"assign: now.txt: does not list partition {missing} of topic 't'"


def test_rows_of_a_dump_that_are_put_aside_are_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    now = tmp_path / "now.txt"
    now.write_text(_ROW.format(0) + _ROW.format(10**12))
    status, out, err = printed(capsys, "t:1:2", "--from", str(now))
    assert (status, list(replicas(out))) == (0, ["t"])
    assert err == (
        "warning: 1 of 2 rows put aside; the first: now.txt:2: Partition is 1000000000000; "
        "allowed are whole numbers from 0 to 10000000\n"
    )


def test_a_table_shows_leader_replicas_and_racks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    racks = tmp_path / "racks.csv"
    racks.write_text("0,left\n1,right\n")
    arguments = ("t:1:2", "--brokers", "0,1", "--racks", str(racks), "--format", "table")
    status, out, _ = printed(capsys, *arguments)
    heading, row = out.splitlines()
    assert status == 0
    assert heading.split() == ["topic", "partition", "leader", "replicas", "racks"]
    assert row.split()[4] in {"left,right", "right,left"}


def test_broken_constraints_are_named_and_make_the_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    racks = tmp_path / "racks.csv"
    racks.write_text("0,left\n1,left\n2,right\n")
    arguments = ("t", "--replica-assignment", "0:1", "--brokers", "0-2", "--racks", str(racks), "--check")
    status, _, err = printed(capsys, *arguments)
    assert status == 1
    assert err == "rack-spread: 1 broken; t-0: on 1 rack where 2 are possible\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("t:3:9", "--brokers", "0-5"),
            1,
            "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached because "
            "only 6 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            ("t:3:9", "--brokers", "0-5", "--kafka", "4.2"),
            1,
            "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached because "
            "only 6 broker(s) are registered.",
        ),
        (
            ("t:3:3", "--brokers", "0-5", "--fenced", "0-5"),
            1,
            "Unable to replicate the partition 3 time(s): All brokers are currently fenced, "
            "or have all their log directories cordoned.",
        ),
        (
            ("t:3:3", "--brokers", "0-5", "--placer", "classic", "--kafka", "4.1"),
            2,
            "Kafka 4.1 has no classic placer; the last release that has it is 4.0",
        ),
        (
            ("t:3:3", "--brokers", "0-5", "--kafka", "2.8"),
            2,
            "Kafka 2.8 has no striped placer; the first release that has it is 3.0",
        ),
        (("t:10001:3", "--brokers", "0-5"), 1, "Excessively large number of partitions per request."),
        (
            ("t:1000000000000:3", "--brokers", "0-5"),
            2,
            "partition count is 1000000000000; the largest allowed is 2147483647",
        ),
        (("t:3:32768", "--brokers", "0-5"), 2, "replication factor is 32768; the largest allowed is 32767"),
        (("..:1:1", "--brokers", "0-5"), 1, "Topic name is invalid: '..' is not allowed"),
        (
            ("a.b:1:1", "a_b:1:1", "--brokers", "0-5"),
            1,
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        (
            (f"{'x' * 250}:1:1", "--brokers", "0-5"),
            1,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (
            ("t", "--replica-assignment", "1:1", "--brokers", "0-5"),
            1,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (("t:-4:3", "--brokers", "0-5"), 1, "Number of partitions was set to an invalid non-positive value."),
        (("t:0:3", "--brokers", "0-5"), 1, "Number of partitions was set to an invalid non-positive value."),
        (("t:0:3", "--brokers", "0-5", "--placer", "classic"), 1, "Number of partitions must be larger than 0."),
        (
            ("t:0:0", "--brokers", "0-5"),
            1,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            ("t:-1:3", "--brokers", "0-5"),
            2,
            "-1 stands for the cluster's default, which is not known here; name the number",
        ),
        (
            ("t:2:3", "u:2:3", "t:3:3", "--brokers", "0-5"),
            2,
            "topic 't' is named twice; a reassignment holds each partition once",
        ),
        (("t:1:1",), 2, "name the brokers by --brokers LIST or by --from DUMP, one of the two"),
        (("t:1:1", "--brokers", "5-1"), 2, "broker list has '5-1'; a range ascends, and at most 100,000 brokers fit"),
        (("t:1:1", "--brokers", "a"), 2, "broker list has 'a'; allowed are ids and ranges, such as 0-5,7"),
        (("t:1:1", "--brokers", "0", "--fenced", "1"), 2, "--fenced names broker 1, which is not among the brokers"),
        (
            ("t:1:1", "--brokers", "0", "--cordoned", "1"),
            2,
            "--cordoned names broker 1, which is not among the brokers",
        ),
        (
            ("t:1:1", "--brokers", "0-3", "--cordoned", "1", "--kafka", "4.2"),
            2,
            "--cordoned needs Kafka 4.3 or later, which has cordoned log directories (KIP-1066)",
        ),
        (
            ("t:1:2", "--brokers", "0-2", "--cordoned", "1,2"),
            1,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
            "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            ("t:1:1", "--brokers", "0", "--placer", "nope"),
            2,
            "placer 'nope' is not installed; there are classic, copyset, least-loaded, striped",
        ),
        (
            ("../x:1:1", "--brokers", "0"),
            2,
            "topic '../x:1:1' cannot be read; the form is NAME:PARTITIONS:FACTOR, "
            "or --partitions and --replication-factor for all",
        ),
    ],
)
def test_what_cannot_be_is_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, message: str
) -> None:
    assert printed(capsys, *arguments) == (status, "", f"assign: {message}\n")


def test_cordoned_brokers_get_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = printed(capsys, "t:50:2", "--brokers", "0-3", "--cordoned", "1,3")
    assert status == 0
    assert {broker for each in json.loads(out)["partitions"] for broker in each["replicas"]} == {0, 2}


def test_a_range_of_brokers_is_bounded_before_memory_is_taken() -> None:
    assert parse_broker_list("3,0-2") == (3, 0, 1, 2)
    with pytest.raises(Exception, match="at most 100,000 brokers fit"):
        parse_broker_list("0-2147483647")
    with pytest.raises(UsageError, match=r"^broker list has '1-1000000000000'; a range ascends, and at most 100,000 "):
        parse_broker_list("1-1000000000000")
    with pytest.raises(UsageError, match=r"^broker id is 1000000000000; allowed are whole numbers from 0 to"):
        parse_broker_list("1000000000000")


def test_racks_of_clusters_alone_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racks = tmp_path / "racks.csv"
    racks.write_text("prod,0,a\nprod,1,b\n")
    status, _, err = printed(capsys, "orders:2:1", "--brokers", "0-1", "--racks", str(racks))
    assert (status, err) == (
        2,
        f"assign: --racks {racks}: the racks file gives none to brokers without a cluster; its clusters are 'prod', "
        "and lines broker,rack are of every cluster\n",
    )
