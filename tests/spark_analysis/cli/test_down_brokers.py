"""Dumps with a broker that is dead: what drains, outages, checks and advice say of it; test_matrix.py has the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.sources.dumps import DumpInput, read_named
from spark_analysis.tables.advice_rows import BALANCE, LEADERS, plan_rows

DEAD = Path(__file__).parents[2] / "real_data" / "reported"
DOWN = {
    "60-dead3": (3, "in no ISR"),
    "d-offline": (5, "every replica offline"),
    "c-sole-in-sync": (34, "only in the ISR of partitions without a leader"),
}
LIVE = {"60-dead3": 2, "d-offline": 2, "c-sole-in-sync": 32}
LIVE_BROKERS = {"60-dead3": [1, 2, 4], "d-offline": [1, 2, 3], "c-sole-in-sync": [31, 32, 33]}


def brokerside_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(brokerside, "brokerside", list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def plan_json(name: str, capsys: pytest.CaptureFixture[str], *arguments: str, out: Path) -> tuple[int, list[str]]:
    given = [each.replace("LIVE", str(LIVE[name])) for each in arguments]
    status, shown, err = brokerside_of(capsys, "plan", str(DEAD / f"{name}.txt"), *given, "--json", "--out", str(out))
    return status, json.loads(shown)["notes"] if status == 0 else [err]


@pytest.mark.parametrize("name", DOWN)
def test_a_drain_places_nothing_there_and_names_the_broker(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down, how = DOWN[name]
    status, notes = plan_json(name, capsys, "--goal", "drain", "--remove", "LIVE", out=tmp_path)
    if status:  # Too few live brokers are left: the refusal counts them.
        assert name == "c-sole-in-sync"
        assert "live brokers" in notes[0]
        return
    assert any(
        note.startswith(f"broker {down} ({how}) looks down: no replica and no leader goes there") for note in notes
    )
    before = {(row["topic"], row["partition"]): row["replicas"] for row in _rows(tmp_path / "rollback.json")}
    for row in _rows(tmp_path / "plan.json"):
        held = before[row["topic"], row["partition"]]
        assert (down in row["replicas"]) == (down in held)
        assert row["replicas"][0] != down or held[0] == down
    assert brokerside_of(capsys, "plan", "--check", str(tmp_path))[0] == 0


def _rows(path: Path) -> list[dict[str, list[int]]]:
    return json.loads(path.read_text())["partitions"]


@pytest.mark.parametrize("name", DOWN)
def test_check_and_impact_say_that_a_plan_goes_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down, how = DOWN[name]
    dump = str(DEAD / f"{name}.txt")
    assert plan_json(name, capsys, "--only-leaders", out=tmp_path)[0] == 0
    topic, number, replicas = _without(dump, down)
    bad = {"topic": topic, "partition": number, "replicas": [down, *replicas[1:]], "log_dirs": ["any"] * len(replicas)}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [bad]}))
    status, _, err = brokerside_of(capsys, "plan", "--check", str(tmp_path))
    assert status == 1
    assert f"a broker that is down receives a replica: 1 partition, such as {topic}-{number}" in err
    assert f"a broker that is down becomes the preferred leader: 1 partition, such as {topic}-{number}" in err
    status, _, err = brokerside_of(capsys, "impact", dump, str(path), "--json")
    assert status == 1
    assert f"Targets name broker {down} ({how}); kafka-reassign-partitions --execute refuses" in err


def _without(dump: str, down: int) -> tuple[str, int, list[int]]:
    """Return a partition of a dump that the broker does not hold: topic, number and replicas."""
    for line in Path(dump).read_text().splitlines():
        fields = dict(part.split(": ", 1) for part in line.strip().split("\t") if ": " in part)
        if "Partition" in fields:
            replicas = [int(each) for each in fields["Replicas"].split(",")]
            if down not in replicas:
                return fields["Topic"], int(fields["Partition"]), replicas
    raise AssertionError(dump)


@pytest.mark.parametrize("name", DOWN)
def test_outage_lets_it_lead_nothing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    down, _ = DOWN[name]
    dump = str(DEAD / f"{name}.txt")
    for lost in (1, 2, 31, 32):
        status, shown, _ = brokerside_of(capsys, "outage", dump, "--lose", str(lost), "--json")
        if status == 0:
            assert json.loads(shown)["pile_up"]["failover_broker"] != down


@pytest.mark.parametrize("name", DOWN)
def test_the_report_advises_nothing_onto_it(name: str) -> None:
    down, how = DOWN[name]
    path = str(DEAD / f"{name}.txt")
    (view,) = read_named(DumpInput(path, name)).clusters
    rows = list(plan_rows(view, [BALANCE, LEADERS]))
    assert rows
    for row in rows:
        assert any(note.startswith(f"broker {down} ({how}) looks down") for note in row["notes"])


@pytest.mark.parametrize("name", DOWN)
def test_the_worst_outages_are_losses_of_live_brokers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    down, _ = DOWN[name]
    _, shown, _ = brokerside_of(capsys, "outage", str(DEAD / f"{name}.txt"), "--json")
    worst = json.loads(shown)["worst"]
    assert sorted(row["broker_id"] for row in worst["brokers"]) == LIVE_BROKERS[name]
    pairs = [{row["broker_id"], row["other_broker_id"]} for row in worst["pairs"]]
    assert len(pairs) == len(LIVE_BROKERS[name]) * (len(LIVE_BROKERS[name]) - 1) // 2
    assert not any(down in pair for pair in pairs)
