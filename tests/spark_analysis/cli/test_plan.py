"""`brokerside plan`: its files, its check of what was changed by hand, its refusals and exit statuses."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from broker.units import MIB, format_seconds
from placement.formats.read import read_dump
from spark_analysis.cli import plan_check
from spark_analysis.cli.commands import brokerside
from tests.placement.planning.cases import SOLVER

REAL = Path(__file__).parents[2] / "real_data"
KRAFT = str(REAL / "kraft-4.3" / "__cluster_metadata-0")

HEAD = "Topic: {}\tTopicId: AAAAAAAAAAAAAAAAAAAAAA\tPartitionCount: {}\tReplicationFactor: {}\tConfigs: \n"
LINE = "\tTopic: {topic}\tPartition: {n}\tLeader: {held[0]}\tReplicas: {listed}\tIsr: {listed}\n"


def described(topic: str, rows: list[list[int]]) -> str:
    lines = [LINE.format(topic=topic, n=n, held=row, listed=",".join(map(str, row))) for n, row in enumerate(rows)]
    return HEAD.format(topic, len(rows), len(rows[0])) + "".join(lines)


DUMP = "".join(described(topic, [[1 + n % 2, 3 + n % 2] for n in range(6)]) for topic in ("orders", "users"))
EMPTY = (5, 6)
RACKS = "1,a\n2,a\n3,b\n4,b\n5,a\n6,b\n"


def listed(text: str, empty: tuple[int, ...] = EMPTY) -> str:
    """Return a describe as kcat shows the cluster, which lists the brokers that hold nothing, too."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        fields = dict(part.split(": ", 1) for part in line.strip().split("\t") if ": " in part)
        if "Partition" in fields:
            ids = {name: [{"id": int(each)} for each in fields[name].split(",")] for name in ("Replicas", "Isr")}
            row = {"partition": int(fields["Partition"]), "leader": int(fields["Leader"])}
            topics.setdefault(fields["Topic"], []).append(row | {"replicas": ids["Replicas"], "isrs": ids["Isr"]})
    held = {each["id"] for rows in topics.values() for row in rows for each in row["replicas"]}
    brokers = [{"id": number, "name": f"host-{number}:9092"} for number in sorted(held | set(empty))]
    rows = [{"topic": topic, "partitions": rows} for topic, rows in topics.items()]
    return json.dumps({"brokers": brokers, "topics": rows})


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "prod.txt").write_text(listed(DUMP))
    (tmp_path / "racks.csv").write_text(RACKS)
    return str(tmp_path / "prod.txt"), "--racks", str(tmp_path / "racks.csv")


def plan(*arguments: str) -> int:
    return run(brokerside, "brokerside", ["plan", *arguments])


def edited(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def test_a_plan_has_every_file_and_passes_its_check(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--throttle", "5000000", "--batches", "2", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "prod: goal balance, 6 brokers, 12 partitions" in shown
    assert "replicas that move              8                   8" in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "answer.json",
        "batch-01.json",
        "batch-02.json",
        "brokers.parquet",
        "certificate.json",
        "commands.txt",
        "input.parquet",
        "moves.parquet",
        "plan.html",
        "plan.json",
        "preferred-election-01.json",
        "rollback.json",
        "summary.json",
    ]
    commands = (out / "commands.txt").read_text()
    assert "--reassignment-json-file batch-01.json --execute --throttle 5000000" in commands
    brokers = pq.read_table(out / "brokers.parquet").to_pylist()
    assert [row["replicas_after"] for row in brokers] == [4] * 6
    assert [row["leaders_after"] for row in brokers] == [2] * 6
    page = (out / "plan.html").read_text()
    assert "8 replicas of 24 move, and no plan to these loads moves fewer" in page
    assert page.count('class="bound"') == 6
    assert "<script" not in page
    assert "<code>brokerside plan --check</code>" in page
    assert plan("--check", str(out)) == 0
    assert plan(*given, "--check", str(out)) == 0
    assert "feasible and at its bound. 8 replicas move, any plan moves at least 8" in capsys.readouterr().out


def test_a_cordoned_broker_of_a_real_cluster_receives_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 3 is cordoned at offset 200 of the log, and holds 3 replicas less than the others."""
    assert plan(KRAFT, "--at", "200", "--out", str(tmp_path / "out")) == 0
    shown = capsys.readouterr().out
    assert "3 (cordoned)  zone-c        19    19   0    0" in shown
    assert "broker 3 is cordoned: partitions there stay as they are" in shown
    assert plan("--check", str(tmp_path / "out")) == 0
    edited(tmp_path / "out", "certificate.json", ',"cordoned":true', "")
    assert plan("--check", str(tmp_path / "out")) == 1
    said = capsys.readouterr().err
    assert "input.parquet is not the input that the certificate was made for" in said
    assert plan(KRAFT, "--at", "300") == 0
    shown = capsys.readouterr().out
    assert "(cordoned)" not in shown
    assert "is cordoned" not in shown


def test_the_plan_is_one_that_kafkas_format_reads_and_leads_to_the_loads_it_says(
    given: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--out", str(out)) == 0
    parsed = read_dump([(out / "plan.json").read_bytes()], source="plan.json")
    table = parsed.clusters[0].partitions
    moves = pq.read_table(out / "moves.parquet").to_pylist()
    assert table.count == len(moves)
    for row in moves:
        assert sorted(set(row["replicas_after"]) - set(row["replicas_before"])) == sorted(row["adding"])
        assert row["replicas_after"][0] == row["leader_after"]
    back = json.loads((out / "rollback.json").read_text())["partitions"]
    before = {(row["topic"], row["partition"]): row["replicas_before"] for row in moves}
    assert {(row["topic"], row["partition"]): row["replicas"] for row in back} == before


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("plan.json", '"replicas":[5,', '"replicas":[1,', "outside"),
        ("plan.json", '"replicas":[6,5]', '"replicas":[6,3]', "fewer racks"),
        ("certificate.json", '"price":[', '"price":[7', "prices prove"),
        ("certificate.json", '"input_sha256":"', '"input_sha256":"0', "not the input"),
        ("batch-01.json", '"partition":0', '"partition":1', "batch-01.json"),
        ("rollback.json", '"replicas":[1,3]', '"replicas":[1,4]', "rollback.json"),
        ("certificate.json", '"moved":8', '"moved":7', "certificate.json says moved is 7; it is 8"),
    ],
)
def test_what_was_changed_by_hand_is_seen(
    given: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    old: str,
    new: str,
    fault: str,
) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--out", str(out)) == 0
    edited(out, name, old, new)
    assert plan("--check", str(out)) == 1
    assert fault in capsys.readouterr().err


def test_a_factor_of_min_insync_replicas_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = described("orders", [[1, 2, 3], [2, 3, 1]]).replace("Configs: ", "Configs: min.insync.replicas=2")
    (tmp_path / "prod.txt").write_text(dump)
    assert plan(str(tmp_path / "prod.txt"), "--goal", "factor", "--factor", "2") == 0
    note = "2 partitions would have as many replicas as min.insync.replicas, or fewer: then one broker out stops"
    assert note in " ".join(capsys.readouterr().out.split())
    assert plan(str(tmp_path / "prod.txt"), "--goal", "factor", "--factor", "3") == 0
    assert "would have as many" not in capsys.readouterr().out


def test_a_plan_for_another_state_of_the_cluster_is_seen(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--out", str(out)) == 0
    (tmp_path / "prod.txt").write_text(
        listed(DUMP.replace("Replicas: 1,3", "Replicas: 1,4", 1).replace("Isr: 1,3", "Isr: 1,4", 1))
    )
    assert plan(*given, "--check", str(out)) == 1
    assert (
        "prod.txt, with these options, is another state of the cluster than the plan was made for; "
        "--racks, --sizes, --down and --alive are to be those of the plan" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--goal", "drain", "--remove", "9"),
            "broker 9 cannot be removed: the cluster's brokers are 1, 2, 3, 4, 5, 6",
        ),
        (("--goal", "drain"), "goal drain needs brokers to remove (--remove 5,6)"),
        (("--goal", "factor"), "goal factor needs a factor (--factor 3)"),
        (("--goal", "add", "--add", "1:b"), "broker 1 is to be added on rack 'b', but stands on rack 'a'"),
        (("--add", "7:"), "--add '7:' names no rack after the colon; allowed are 7 and 7:rack-a"),
        (("--exclude-topic", "x"), "topic 'x' cannot be excluded: prod has no such topic"),
        (
            ("--goal", "factor", "--factor", "7"),
            "orders-0 needs 7 live brokers, and 6 remain; 1 more, or a smaller factor (--factor 6)",
        ),
        (
            ("--goal", "factor", "--factor", "3", "--strict-racks"),
            "orders-0 has 3 replicas for 2 racks (a, b); 1 more rack, or no --strict-racks: then each rack gets at "
            "least one",
        ),
        (
            ("--goal", "drain", "--remove", "1", "--exclude-topic", "users"),
            "broker 1 cannot be removed: it holds users-0 of an excluded topic (3 such replicas on removed brokers); "
            "do not exclude the topic",
        ),
        (("--new-only-receives",), "only new brokers may receive, but none is added (--add 7:rack-a)"),
        (
            ("--only-leaders", "--remove", "1"),
            "a plan of leaders alone moves no replica: it can neither add, remove nor change a factor",
        ),
        (
            ("--only-leaders", "--goal", "racks"),
            "a plan of leaders alone moves no replica: it changes no racks, nor replicas of a topic",
        ),
        (
            ("--only-leaders", "--per-topic"),
            "a plan of leaders alone moves no replica: it changes no racks, nor replicas of a topic",
        ),
        (("--tolerance", "5"), "a tolerance is one of bytes; add --by bytes, or leave out --tolerance"),
        (("--throttle", "0"), "--throttle is 0; a rate is at least 1 byte a second"),
        (
            ("--goal", "add", "--add", "10:r1", "--add", "10:r2"),
            "broker 10 is to be added on two racks, 'r1' and 'r2'; a broker has one",
        ),
        (
            ("--by", "bytes", "--tolerance", "5"),
            "a plan by bytes needs sizes, and 12 partitions have none (orders-0, orders-1, orders-2, orders-3, "
            "orders-4 and 7 more); give a file that states them (--sizes)",
        ),
    ],
)
def test_refusals_name_the_rule_and_the_numbers(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert plan(*given, *arguments) in (1, 2)
    assert capsys.readouterr().err == f"brokerside: {message}\n"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda proof: proof["replicas"]["price"].__setitem__(0, 10**30), "OverflowError"),
        (lambda proof: proof["brokers"][0].__setitem__("rack", 7), "rack is 7, no text"),
        (lambda proof: proof.pop("moved"), "KeyError 'moved'"),
        (lambda proof: proof["brokers"][0].__setitem__("id", 10**12), "a broker's id is 1000000000000; allowed are"),
        (lambda proof: proof["brokers"][0].__setitem__("id", True), "a broker's id is True; allowed are"),
        (lambda proof: proof["brokers"][0].__setitem__("fenced", None), "fenced is None, neither true nor false"),
        (lambda proof: proof["brokers"][0].__setitem__("added", True), "is added, unlike in the goal"),
        (lambda proof: proof["leaders"]["block"].__setitem__(0, -5), "a block is -5; allowed are -1"),
        (lambda proof: proof["goal"].pop("strict_racks"), "the goal has no 'strict_racks'"),
        (lambda proof: proof["goal"].__setitem__("per_topic", "x"), "per_topic is 'x', neither true nor false"),
        (lambda proof: proof["topics"].append(proof["topics"][0]), "a topic is listed twice"),
    ],
)
def test_a_certificate_of_another_shape_is_one_sentence(
    given: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Any], object],
    what: str,
) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--out", str(out)) == 0
    proof = json.loads((out / "certificate.json").read_text())
    change(proof)
    (out / "certificate.json").write_text(json.dumps(proof))
    assert plan("--check", str(out)) == 1
    said = capsys.readouterr().err
    assert said.startswith("brokerside: failed: certificate.json: is no certificate of a plan: ")
    assert what in said


@pytest.mark.parametrize("arguments", [("--goal", "racks"), ("--strict-racks",)])
def test_rules_of_racks_without_racks_are_refused(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert plan(given[0], *arguments) == 2
    assert "none of the 6 brokers of prod has a known rack (--racks FILE)" in capsys.readouterr().err


def test_a_reassignment_in_progress_is_refused_or_planned_from_its_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "prod.txt"
    moving = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 3,1\tIsr: 1\tAdding Replicas: 3\tRemoving Replicas: 1\n"
    still = "\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    dump.write_text(HEAD.format("t", 2, 1) + moving + still)
    assert plan(str(dump)) == 1
    assert "in a reassignment that is not complete (t-0); wait for it, cancel it, or plan from its target" in (
        capsys.readouterr().err
    )
    assert plan(str(dump), "--from-target", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["moved"], found["replica_count"]) == (0, 2)


def test_the_check_and_all_that_it_imports_import_no_solver() -> None:
    """The package's own __init__ aside, which lists everything that is public."""
    waiting, seen = [plan_check.__name__], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name.split(".")[0] not in ("placement", "spark_analysis"):
            continue
        seen.add(name)
        source = Path(str(import_module(name).__file__))
        if source.name != "__init__.py":
            tree = ast.walk(ast.parse(source.read_text()))
            waiting += [str(node.module) for node in tree if isinstance(node, ast.ImportFrom)]
    assert "placement.planning.certificate" in seen
    assert not seen & {f"placement.planning.{one}" for one in SOLVER}


def test_a_folder_that_is_no_plan_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--check", str(tmp_path)) == 2
    assert (
        capsys.readouterr().err == f"brokerside: {tmp_path / 'certificate.json'}: is missing; a plan's folder has it\n"
    )
    assert plan() == 2
    assert "a DUMP is needed to plan, or --check DIR to check a plan" in capsys.readouterr().err


def test_a_plan_to_even_bytes_shows_its_gap_and_is_checked(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both topics have 84 MiB, half of it on each rack of three: 14 MiB a broker, or as their disks are."""
    sizes, out = tmp_path / "sizes.json", tmp_path / "out"
    topics = {topic: {str(n): {"Size": (n + 1) * 1_048_576} for n in range(6)} for topic in ("orders", "users")}
    sizes.write_text(json.dumps(topics))
    even = (*given, "--sizes", str(sizes), "--by", "bytes", "--tolerance", "10")
    assert plan(*even, "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "prod: goal balance by bytes within 10 %, 6 brokers, 12 partitions" in shown
    assert "of them above the bound" in shown
    brokers = pq.read_table(out / "brokers.parquet").to_pylist()
    assert all(row["bytes_low"] <= row["bytes_after"] <= row["bytes_high"] for row in brokers)
    assert [(row["bytes_low"] >> 20, row["bytes_high"] >> 20) for row in brokers] == [(13, 15)] * 6
    assert {row["replicas_low"] for row in brokers} == {None}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["moved_bytes_bound"] <= summary["moved_bytes"]
    assert summary["moved_bytes_gap"] == 1 - summary["moved_bytes_bound"] / summary["moved_bytes"]
    assert "Every broker ends within 10 % of the bytes that it would have at best" in (out / "plan.html").read_text()
    assert plan("--check", str(out)) == 0
    assert "feasible and within its byte tolerance, " in capsys.readouterr().out
    assert plan(*given, "--check", str(out)) == 0
    edited(out, "certificate.json", '"moved_bytes_bound":', '"moved_bytes_bound":1')
    assert plan("--check", str(out)) == 1
    assert "certificate.json says moved_bytes_bound is 1" in capsys.readouterr().err
    disks = tmp_path / "disks.csv"
    disks.write_text(
        "".join(f"{broker},{(12 + 4 * (broker > 2) - 2 * (broker > 4)) << 30}\n" for broker in range(1, 7))
    )
    assert plan(*even, "--capacity", str(disks), "--out", str(out)) == 0
    brokers = pq.read_table(out / "brokers.parquet").to_pylist()
    assert [row["bytes_high"] >> 20 for row in brokers] == [14, 14, 16, 16, 17, 14]
    assert plan("--check", str(out)) == 0
    disks.write_text("broker,ingress\n1,5\n")
    capsys.readouterr()
    assert plan(*even, "--capacity", str(disks)) == 2
    assert "states no disk bytes of the brokers" in capsys.readouterr().err


def test_a_plan_to_even_bytes_and_topics_is_checked_for_both(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each topic has twelve replicas for six brokers of two racks."""
    sizes, out = tmp_path / "sizes.json", tmp_path / "out"
    topics = {topic: {str(n): {"Size": (n + 1) * 1_048_576} for n in range(6)} for topic in ("orders", "users")}
    sizes.write_text(json.dumps(topics))
    even = (*given, "--sizes", str(sizes), "--by", "bytes", "--per-topic")
    assert plan(*even) == 2
    assert "add --tolerance 5, or leave out --by bytes" in capsys.readouterr().err
    assert plan(*even, "--tolerance", "25", "--out", str(out)) == 0
    assert plan("--check", str(out)) == 0
    proof = json.loads((out / "certificate.json").read_text())
    assert proof["replicas"]["topics"]["high"] == [[2] * 6] * 2
    edited(out, "certificate.json", '"topics":{"low":[[2,', '"topics":{"low":[[1,')
    assert plan("--check", str(out)) == 1
    assert "the bounds of 1 topic are not the most even, such as orders" in capsys.readouterr().err


def test_new_brokers_that_are_too_few_are_refused_with_the_partition_and_its_racks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All three replicas are in rack a: two have to leave it, and one new broker takes one."""
    (tmp_path / "prod.txt").write_text(listed(described("orders", [[1, 2, 3]]), empty=(4,)))
    (tmp_path / "racks.csv").write_text("1,a\n2,a\n3,a\n4,b\n")
    cluster = str(tmp_path / "prod.txt"), "--racks", str(tmp_path / "racks.csv"), "--add", "9:c", "--new-only-receives"
    told = (
        "brokerside: orders-0 is on brokers 1 (rack a), 2 (rack a), 3 (rack a), and only broker 9 (rack c) may "
        "receive, which is too few for 3 replicas on as many racks as can be; let other brokers receive too (leave out "
        "--new-only-receives)"
    )
    assert plan(*cluster, "--goal", "add") == 1
    assert capsys.readouterr().err == told + ", or restore racks first (--goal racks)\n"
    assert plan(*cluster, "--goal", "racks") == 1
    assert capsys.readouterr().err == told + "\n"
    assert (
        plan(str(tmp_path / "prod.txt"), "--add", "9", "--factor", "6", "--goal", "factor", "--new-only-receives") == 1
    )
    assert "and 5 remain" in capsys.readouterr().err
    assert plan(str(tmp_path / "prod.txt"), "--racks", str(tmp_path / "racks.csv"), "--goal", "racks") == 0


def test_a_tolerance_of_nothing_names_the_mean_that_no_partitions_add_up_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three partitions of 1 GiB on two brokers: each would have 1.5 GiB; of 3 bytes each 1.5 bytes."""
    (tmp_path / "prod.txt").write_text(described("orders", [[1], [1], [2]]))
    for size, mean in ((1 << 30, "1.5 GiB"), (1, "1 B to 2 B")):
        (tmp_path / "sizes.json").write_text(json.dumps({"orders": {str(n): {"Size": size} for n in range(3)}}))
        bytes_only = "--sizes", str(tmp_path / "sizes.json"), "--by", "bytes"
        assert plan(str(tmp_path / "prod.txt"), *bytes_only, "--tolerance", "0") == 1
        assert capsys.readouterr().err == (
            f"brokerside: no sum of whole partitions lies within 0 % of the mean of broker 1, {mean}; choose a wider "
            "--tolerance\n"
        )


def test_where_nothing_moves_the_commands_still_elect_the_preferred_leaders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replicas and preferred leaders are even; broker 2 leads one partition that broker 1 should."""
    text = described("orders", [[1, 2], [2, 1]]) + described("users", [[1, 2], [2, 1]])
    (tmp_path / "prod.txt").write_text(text.replace("Leader: 1", "Leader: 2", 1))
    out = tmp_path / "out"
    assert plan(str(tmp_path / "prod.txt"), "--out", str(out)) == 0
    commands = [line for line in (out / "commands.txt").read_text().splitlines() if line and line[0] != "#"]
    assert commands == [
        'kafka-leader-election.sh --bootstrap-server "$BOOTSTRAP" --election-type preferred '
        "--path-to-json-file preferred-election-others.json"
    ]
    elected = json.loads((out / "preferred-election-others.json").read_text())
    assert elected == {"partitions": [{"topic": "orders", "partition": 0}]}
    assert "no replica has to move" in capsys.readouterr().out
    assert plan("--check", str(out)) == 0
    assert plan(str(tmp_path / "prod.txt"), "--exclude-topic", "orders", "--out", str(out)) == 0
    assert (out / "commands.txt").read_text() == "# Nothing has to change.\n"
    assert not (out / "preferred-election-others.json").exists()


def test_the_commands_on_the_page_are_lines_to_copy(given: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert plan(*given, "--batches", "2", "--out", str(out)) == 0
    found = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", (out / "plan.html").read_text(), re.DOTALL)
    assert found is not None
    assert html.unescape(found[1]) + "\n" == (out / "commands.txt").read_text()


def warned(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What the notes of a plan say of its pace."""
    assert plan(*arguments, "--json") == 0
    return [note for note in json.loads(capsys.readouterr().out)["notes"] if "no throttle is set" in note]


def test_a_plan_that_copies_much_at_once_offers_what_would_pace_it(capsys: pytest.CaptureFixture[str]) -> None:
    reported = REAL / "reported"
    given = (str(reported / "42-jbod.txt"), "--add", "3", "--sizes", str(reported / "42-logdirs.json"))
    size = 200_000_000_000
    (note,) = warned(capsys, *given)
    assert note.startswith(
        "the plan copies 745.1 GiB at once, 745.1 GiB of that into broker 3, and no throttle is set: "
    )
    times = [f"{rate}MiB takes at least {format_seconds(4 * size / rate / MIB)}" for rate in (50, 100)]
    assert f"--throttle {', '.join(times)}; --concurrency " in note
    found = re.search(r"--concurrency (\d+) makes (\d+) batches that take at least (.*) at 50MiB", note)
    assert found is not None
    assert plan(*given, "--concurrency", found[1], "--throttle", "50MiB", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["batch_count"], format_seconds(made["seconds_at_throttle"])) == (int(found[2]), found[3])
    assert warned(capsys, *given, "--throttle", "50MiB") == []
    (note,) = warned(capsys, *given, "--concurrency", "1")
    assert note.startswith("a batch copies 186.3 GiB at once")
    assert "--concurrency" not in note


def test_a_plan_of_many_replicas_of_unknown_sizes_says_that_times_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prod.txt").write_text(described("orders", [[1 + n % 2] for n in range(600)]))
    (note,) = warned(capsys, str(tmp_path / "prod.txt"), "--add", "3")
    assert note.startswith("the plan copies 200 replicas at once, 200 of them into broker 3, and no throttle is set: ")
    assert "takes at least" not in note
    assert "--concurrency 7 makes 29 batches; sizes are unknown, and so are the times: --sizes gives them" in note
    assert warned(capsys, str(tmp_path / "prod.txt"), "--add", "3", "--concurrency", "10") == []
