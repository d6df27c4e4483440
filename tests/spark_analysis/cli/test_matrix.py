"""Every reported input and real dump through every command: the same word on whole, alive, min.insync.replicas, sizes.

What a describe shows is read here once more by twenty lines that share no code with the parser. Of other formats the
commands are compared with each other. What is not alive receives nothing, leads nothing and is not restarted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.sources.dumps import DumpInput, read_named
from spark_analysis.tables.advice_rows import BALANCE, LEADERS, plan_rows

REAL = Path(__file__).parents[2] / "real_data"
QUICK = (
    "reported/a-cut-off.txt",
    "reported/b-factor-over-dead.txt",
    "reported/c-sole-in-sync.txt",
    "reported/d-offline.txt",
    "reported/g-one-leads-all.txt",
    "reported/20-first.txt",
    "reported/37-leader-1.txt",
    "reported/41.json",
    "reported/42-jbod.txt",
    "reported/51-cmak-795.txt",
    "reported/60-dead3.txt",
    "kraft/describe/4-brokers-1-and-4-gone.txt",
    "multiregion/5-placement-switched.txt",
    "multiregion/3-west-region-stopped.txt",
)
FOLDERS = ("reported", "reported/pasted", "reported/daily", "kraft/describe", "kraft-4.3/describe", "multiregion")
EVERY = sorted(
    str(path.relative_to(REAL)) for folder in FOLDERS for path in (REAL / folder).iterdir() if path.is_file()
)
INPUTS = [
    *QUICK,
    *(pytest.param(name, marks=pytest.mark.deep) for name in EVERY if name not in QUICK),
    pytest.param("kraft/__cluster_metadata-0", marks=pytest.mark.deep),
    pytest.param("kraft-4.3/__cluster_metadata-0", marks=pytest.mark.deep),
    pytest.param("reported/kafka-3.6-data", marks=pytest.mark.deep),
]
GOALS = {
    "balance": (),
    "leaders": ("--only-leaders",),
    "add": ("--goal", "add", "--add", "999"),
    "factor": ("--goal", "factor", "--factor", "2"),
    "drain": ("--goal", "drain", "--remove", "LIVE"),
}
NEEDS_WHOLE = ("roll", "outage", "plan", "compare")


class Commands:
    """Runs commands on one dump; standard output is JSON, and no failure is unexpected."""

    def __init__(self, dump: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.dump, self.out, self._capsys = str(dump), out, capsys

    def run(self, name: str, *more: str, out: str = "") -> tuple[int, Any, str]:
        dumps = [self.dump, self.dump] if name == "compare" else [self.dump]
        folder = ["--out", str(self.out / out)] if out else []
        form = ["--quiet"] if name == "report" else ["--json"]
        status = run(brokerside, "brokerside", [name, *dumps, *more, *folder, *form])
        shown, err = self._capsys.readouterr()
        assert status in (0, 1, 2), err
        assert "Traceback" not in shown + err
        return status, json.loads(shown) if shown.startswith("{") else None, err

    def check(self, out: str) -> None:
        status = run(brokerside, "brokerside", ["plan", "--check", str(self.out / out)])
        assert status == 0, self._capsys.readouterr().err
        self._capsys.readouterr()

    def report(self, *more: str) -> tuple[int, dict[str, Any] | None, str]:
        status, _, err = self.run("report", *more, out="report")
        path = self.out / "report" / "report.json"
        return status, json.loads(path.read_text()) if path.exists() else None, err


@pytest.fixture
def commands(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(REAL / request.param, tmp_path, capsys)


@pytest.mark.parametrize("commands", INPUTS, indirect=True)
def test_every_command_says_the_same_of_a_cluster(commands: Commands) -> None:
    status, report, err = commands.report()
    if report is None or not report["known"]:
        for name in NEEDS_WHOLE:
            refused, answer, why = commands.run(name)
            assert (refused, answer) == (2, None), (name, why)
        assert status == 2
        return
    if len(report["known"]) > 1:  # Of several clusters in one file a command wants one.
        assert commands.run("roll")[2].endswith("choose one with --cluster NAME\n")
        return
    (known,) = report["known"]
    if not report["rows_rejected"]:  # Which lines are no rows is the reader's own matter.
        check_against_the_describe(commands, known)
    assert commands.report("--strict")[0] == int(bool(known["partial"] or report["rows_rejected"]))
    listed = report["partition_count"] not in (0, None)
    more = ()
    if known["partial"] or not listed:
        for name in NEEDS_WHOLE:
            status, answer, err = commands.run(name)
            assert (status, answer) == (2, None)
            assert (known["partial"] in err) == listed
        more = ("--partial",)
    if listed:
        down = {each["broker_id"] for each in known["down"]}
        check_the_rest(commands, known, down, more)
        check_plans(commands, known, down, more)


def check_the_rest(commands: Commands, known: dict[str, Any], down: set[int], more: tuple[str, ...]) -> None:
    _, roll, err = commands.run("roll", "--despite-out-of-sync", *more)
    assert roll is not None, err
    assert set(roll["fenced_broker_ids"]) == down
    assert not down & {broker for batch in roll["batches"] for broker in batch}
    _, outage, err = commands.run("outage", *more)
    _, compared, _ = commands.run("compare", *more)
    assert [roll["known"], outage["known"], compared["known"]] == [[known], [known], [known, known]]
    assert not down & {row[name] for row in outage["worst"]["pairs"] for name in ("broker_id", "other_broker_id")}
    assert not down & {row["broker_id"] for row in outage["worst"]["brokers"]}
    for broker in sorted(down)[:2]:
        lost = commands.run("outage", "--lose", str(broker), *more)[1]
        assert lost["affected_count"] == 0, f"{broker} is lost already"
    if not known["partial"]:
        assert commands.run("roll", "--partial")[1:] == commands.run("roll")[1:], "nothing is partial"


def check_plans(commands: Commands, known: dict[str, Any], down: set[int], more: tuple[str, ...]) -> None:
    rows = pq.read_table(commands.out / "report" / "tables" / "brokers").to_pylist()
    live = str(max({row["broker_id"] for row in rows} - down, default=0))
    for goal, options in GOALS.items():
        given = [live if word == "LIVE" else word for word in options]
        status, plan, err = commands.run("plan", *given, *more, out=goal)
        if plan is None:
            assert status in (1, 2), err
            continue
        (of_plan,) = plan["known"]
        assert {**of_plan, "sizes": known["sizes"]} == known
        before = partitions_of(commands.out / goal / "rollback.json")
        after = partitions_of(commands.out / goal / "plan.json")
        for key, replicas in after.items():
            assert not (set(replicas) - set(before[key])) & down, (goal, key)
            assert replicas[0] not in down or before[key][0] == replicas[0], (goal, key)
        if after:
            added = ("--add", "999") if goal == "add" else ()
            _, impact, err = commands.run("impact", str(commands.out / goal / "plan.json"), *added, *more)
            assert impact is not None, err
            assert impact["known"] == [known]
            assert impact["moved_replica_count"] == plan["moved"], goal
        commands.check(goal)


DOWN = {
    "60-dead3": (3, "in no ISR"),
    "d-offline": (5, "every replica offline"),
    "c-sole-in-sync": (34, "only in the ISR of partitions without a leader"),
}


@pytest.mark.parametrize("name", DOWN)
def test_a_broker_that_is_down_is_named_and_a_plan_that_goes_there_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (down, how), commands = DOWN[name], Commands(REAL / "reported" / f"{name}.txt", tmp_path, capsys)
    _, plan, _ = commands.run("plan", "--only-leaders", out="plan")
    looks = f"broker {down} ({how}) looks down"
    assert any(note.startswith(f"{looks}: no replica and no leader goes there") for note in plan["notes"])
    (view,) = read_named(DumpInput(commands.dump, name)).clusters
    advised = list(plan_rows(view, [BALANCE, LEADERS]))
    assert advised
    assert all(any(note.startswith(looks) for note in row["notes"]) for row in advised)
    held = zip(view.partitions.topic_index.tolist(), view.partitions.partition_ids.tolist(), strict=True)
    of, replicas = next(
        each for each in zip(held, view.partitions.replicas.tolist(), strict=True) if down not in each[1]
    )
    entry = {"topic": view.topics[of[0]].name, "partition": of[1], "replicas": [down, *replicas[1:]]}
    path = tmp_path / "plan" / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    assert run(brokerside, "brokerside", ["plan", "--check", str(tmp_path / "plan")]) == 1
    err, place = capsys.readouterr().err, f"1 partition, such as {entry['topic']}-{of[1]}"
    assert f"a broker that is down receives a replica: {place}" in err
    assert f"a broker that is down becomes the preferred leader: {place}" in err
    status, _, err = commands.run("impact", str(path))
    assert status == 1
    assert f"Targets name broker {down} ({how}); kafka-reassign-partitions --execute refuses" in err


def partitions_of(path: Path) -> dict[tuple[str, int], list[int]]:
    return {(row["topic"], row["partition"]): row["replicas"] for row in json.loads(path.read_text())["partitions"]}


def check_against_the_describe(commands: Commands, known: dict[str, Any]) -> None:
    """Compare with what lines of a describe say, read here by themselves; other formats are passed over."""
    text = Path(commands.dump).read_bytes() if Path(commands.dump).is_file() else b""
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if re.match(r"\s*Topic: ?\S", line)]
    if not any("PartitionCount:" in line and "Configs:" in line for line in lines) or "pasted" in commands.dump:
        return
    declared, listed, held, seen = {}, defaultdict(set), defaultdict(list), set()
    for line in lines:
        fields = dict(re.findall(r"([A-Z][A-Za-z]*): *([^\s:]*)", line))
        if "PartitionCount" in fields:
            declared.setdefault(fields["Topic"], int(fields["PartitionCount"]))
            continue
        if not {"Partition", "Replicas", "Isr"} <= fields.keys() or not fields["Partition"].isdecimal():
            continue
        if fields["Partition"] in listed[fields["Topic"]]:
            continue
        listed[fields["Topic"]].add(fields["Partition"])
        isr, gone, watching = (set(fields.get(name, "").split(",")) for name in ("Isr", "Offline", "Observers"))
        is_led = fields["Leader"].isdecimal()
        for broker in fields["Replicas"].split(","):
            state = "offline" if broker in gone else "no ISR" if is_led and broker not in isr | watching else ""
            held[broker].append("dead" if not is_led and broker in isr else state)
        if is_led:
            seen |= isr
    assert (known["partial"] is not None) == any(count != len(listed[topic]) for topic, count in declared.items())
    if known["partial"]:
        topic, count = next((topic, count) for topic, count in declared.items() if count != len(listed[topic]))
        assert known["partial"].startswith(f"{topic} declares {count} partition")
        assert f"{len(listed[topic])} {'is' if len(listed[topic]) == 1 else 'are'} listed" in known["partial"]
    down = {
        int(broker)
        for broker, states in held.items()
        if set(states) == {"offline"} or (broker not in seen and {"dead", "no ISR"} & set(states))
    }
    if "Elr:" not in "".join(lines):  # Of the ELR the reader has rules of its own.
        assert {each["broker_id"] for each in known["down"]} == down


@pytest.mark.parametrize("moment", ["2-broker-3-killed", "4-brokers-1-and-4-gone", "6-end"])
def test_a_describe_and_the_metadata_log_of_its_moment_agree(
    moment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = dict(line.split(",") for line in (REAL / "kraft/describe/times.csv").read_text().split())
    dumps = (REAL / f"kraft/describe/{moment}.txt", REAL / "kraft/__cluster_metadata-0")
    at = datetime.fromtimestamp(int(times[f"{moment}.txt"]) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    (tmp_path / "racks.csv").write_text("1,a\n2,b\n3,a\n4,b\n")
    found = []
    for dump, more in zip(dumps, ((), ("--at", at)), strict=True):
        commands = Commands(dump, tmp_path, capsys)
        racks = ("--racks", str(tmp_path / "racks.csv"))
        roll = commands.run("roll", "--despite-out-of-sync", *racks, *more)[1]
        plan = commands.run("plan", *racks, *more, out=dump.name)[1]
        (known,) = roll["known"]
        down = [each["broker_id"] for each in known["down"]]
        before = partitions_of(tmp_path / dump.name / "rollback.json")
        for key, replicas in partitions_of(tmp_path / dump.name / "plan.json").items():
            assert not (set(replicas) - set(before[key])) & set(down)
        found.append((down, known["partial"], plan["moved"], roll["batches"]))
    assert found[0] == found[1]


SAID = {
    "dead directory": (
        ("reported/42-jbod.txt", "--sizes", "reported/42-logdirs-dead.json"),
        "broker 2: log directory /data2 is offline, and 4 replicas of the broker with it",
    ),
    "sizes of the others": (
        ("reported/42-jbod.txt", "--sizes", "reported/42-logdirs-dead.json"),
        "sizes: 12 replicas measured, of 4 the largest other replica of the partition is taken, 0 not known",
    ),
    "offline directory of Cruise Control": (
        ("reported/28-cc-state.json",),
        "broker 1: log directory /var/lib/kafka/data1 is offline",
    ),
    "racks of another cluster": (
        ("reported/41.json", "--racks", "RACKS"),
        "racks: 2 of 3 brokers of the file are not in the dump (71, 72); one counts where --add names it",
    ),
    "stated down": (("reported/d-offline.txt", "--down", "1", "--alive", "5"), "not alive: broker 1 (down by --down)"),
    "cut off": (
        ("reported/a-cut-off.txt",),
        "not the whole cluster: payments declares 8 partitions, 3 are listed",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_limits_a_report_is_a_line_of_it(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, line = SAID[case]
    (tmp_path / "racks.csv").write_text("1,a\n71,a\n72,b\n")
    words = [str(REAL / word) if word.startswith("reported/") else word for word in given]
    words = [str(tmp_path / "racks.csv") if word == "RACKS" else word for word in words]
    assert run(brokerside, "brokerside", ["report", *words, "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert line in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["report", "roll", "outage", "plan"])
def test_a_broker_that_is_not_there_is_one_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, out = str(REAL / "reported/d-offline.txt"), str(tmp_path / "out")
    for option in ("--down", "--alive"):
        assert run(brokerside, "brokerside", [name, dump, option, "77", "--out", out]) == 2
        assert capsys.readouterr().err.endswith("broker 77 is not in cluster d-offline; its brokers are 1, 2, 3, 5\n")
    assert run(brokerside, "brokerside", [name, dump, "--down", "1", "--alive", "1", "--out", out]) == 2
    assert capsys.readouterr().err == "brokerside: broker 1 is named by --down and by --alive\n"


def test_what_can_lose_records_is_looked_at_before_what_is_under_replicated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five partitions miss one replica of three; of another cluster one partition has its last live copy alone."""
    for name, isrs in (("five", ["1,2"] * 5), ("sole", ["1", "1,2,3"])):
        rows = [f"\tTopic: t\tPartition: {n}\tLeader: 1\tReplicas: 1,2,3\tIsr: {isr}\n" for n, isr in enumerate(isrs)]
        head = f"Topic: t\tTopicId: x\tPartitionCount: {len(isrs)}\tReplicationFactor: 3\tConfigs: \n"
        (tmp_path / f"{name}.txt").write_text(head + "".join(rows))
    dumps, out = [str(tmp_path / f"{name}.txt") for name in ("five", "sole")], tmp_path / "out"
    assert run(brokerside, "brokerside", ["report", *dumps, "--out", str(out), "--fail-on", "sole-copy"]) == 1
    printed = capsys.readouterr()
    assert "  1. sole: 1 partition has a sole live copy, one broker from loss; " in printed.out
    assert printed.err == "brokerside: failed: sole: 1 partition has a sole live copy, one broker from loss\n"
    answer = json.loads((out / "report.json").read_text())
    assert [each["cluster"] for each in answer["first_to_look_at"]] == ["sole", "five"]
    assert answer["sole_copy_count"] == 1


CROWDED = """Topic: b\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: min.insync.replicas=1
\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2
\tTopic: b\tPartition: 1\tLeader: 2\tReplicas: 2,4,5\tIsr: 2,4,5
\tTopic: b\tPartition: 2\tLeader: 4\tReplicas: 4,5,1\tIsr: 4,1,5
"""


def test_a_dead_broker_whose_drain_leaves_two_replicas_on_a_rack_is_drained_by_restoring_racks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers 1 and 2 share rack a, 3 is dead: a drain leaves b-0 on racks a and b, where c has a broker too."""
    dump, racks = tmp_path / "crowded.txt", tmp_path / "racks.csv"
    dump.write_text(CROWDED)
    racks.write_text("1,a\n2,a\n3,b\n4,b\n5,c\n")
    said = []
    for name, *more in (("report", "--out", str(tmp_path / "report")), ("roll",), ("plan",)):
        run(brokerside, "brokerside", [name, str(dump), *more, "--racks", str(racks)])
        said.append(capsys.readouterr().out)
    assert all("--goal racks --remove 3" in each for each in said)
    for goal, kept in (("drain", True), ("racks", False)):
        out = tmp_path / goal
        given = ["--racks", str(racks)]
        assert (
            run(
                brokerside,
                "brokerside",
                ["plan", str(dump), "--goal", goal, "--remove", "3", *given, "--out", str(out)],
            )
            == 0
        )
        refused = "rollback.json names broker 3 (in no ISR): --execute refuses the whole file until it is back"
        assert f"Note: {refused}\n" in capsys.readouterr().out
        assert f"\n# {refused}\n# kafka-reassign-partitions.sh" in (out / "commands.txt").read_text()
        assert run(brokerside, "brokerside", ["impact", str(dump), str(out), *given]) == 0
        assert ("Still on fewer racks than could be" in capsys.readouterr().out) == kept
        assert run(brokerside, "brokerside", ["impact", str(dump), str(out / "rollback.json"), *given]) == 1


def test_a_plan_that_keeps_a_dead_broker_is_refused_by_kafka_and_by_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, plan = tmp_path / "crowded.txt", tmp_path / "plan.json"
    dump.write_text(CROWDED)
    plan.write_text('{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[2,1,3]}]}')
    assert run(brokerside, "brokerside", ["impact", str(dump), str(plan), "--json"]) == 1
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out)["findings"]
    assert (found["name"], found["is_bad"]) == ("broker-not-live", True)
    assert "--execute refuses the whole file" in printed.err


def test_a_broker_stated_down_leads_nothing_in_any_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Broker 4 leads b-2 in the dump; with --down 4 broker 5, the next in its ISR, leads it before any plan."""
    dump, plan = tmp_path / "crowded.txt", tmp_path / "plan.json"
    dump.write_text(CROWDED)
    plan.write_text('{"version":1,"partitions":[{"topic":"b","partition":1,"replicas":[2,1,5]}]}')
    given = ["--down", "4", "--json"]
    leads = {1: 1, 2: 1, 3: 0, 4: 0, 5: 1}
    run(brokerside, "brokerside", ["impact", str(dump), str(plan), *given])
    rows = json.loads(capsys.readouterr().out)["brokers"]
    assert {row["broker_id"]: row["leader_count_before"] for row in rows} == leads
    out = tmp_path / "out"
    run(brokerside, "brokerside", ["plan", str(dump), *given, "--out", str(out)])
    run(brokerside, "brokerside", ["outage", str(dump), *given, "--out", str(tmp_path / "outage")])
    run(brokerside, "brokerside", ["report", str(dump), "--down", "4", "--out", str(tmp_path / "report")])
    capsys.readouterr()
    for path, who, count in (
        (out / "brokers.parquet", "broker", "leaders_before"),
        (tmp_path / "report" / "tables" / "brokers", "broker_id", "leader_count"),
    ):
        assert {row[who]: row[count] for row in pq.read_table(path).to_pylist()} == leads, path
