"""The input side of the what-if commands: one DUMP and its options become one cluster, or one sentence."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import attrs
import pytest

from broker.cli import run
from broker.errors import InputError, UsageError
from spark_analysis.cli.cluster_inputs import Cluster, ClusterOptions, give_answer, read_cluster, shown_table
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
DESCRIBE = (
    "Topic: t\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2\n"
)
NOTHING = ClusterOptions(
    out=None,
    as_json=False,
    cluster=None,
    racks=None,
    sizes=None,
    capacity=None,
    at=None,
    named_format=None,
    min_isr=None,
    partial=False,
    down=None,
    alive=None,
)


def read(dump: Path | str, **given: object) -> Cluster:
    with read_cluster(str(dump), attrs.evolve(NOTHING, **given)) as cluster:
        return cluster


def test_racks_sizes_capacity_and_min_isr_reach_the_cluster(tmp_path: Path) -> None:
    dump, racks, sizes, capacity = (tmp_path / name for name in ("d.txt.gz", "r.csv", "s.json", "c.csv"))
    dump.write_bytes(gzip.compress(DESCRIBE.encode()))
    racks.write_text("1,a\n2,b\n3,b\n")
    sizes.write_text(json.dumps({"t": {"0": {"size": 10}, "1": {"size": 20}}}))
    capacity.write_text("-1,1000\n")
    cluster = read(dump, racks=str(racks), sizes=str(sizes), capacity=str(capacity), min_isr=2)
    assert [(broker.id, broker.rack) for broker in cluster.view.brokers] == [(1, "a"), (2, "b")]
    assert cluster.view.unlisted == (3,)
    assert cluster.view.partitions.size_bytes is not None
    assert cluster.view.partitions.size_bytes.tolist() == [10, 20]
    assert cluster.view.topics[0].min_insync_replicas == 2
    assert cluster.capacities.free_disk_bytes(cluster.view).tolist() == [970, 970]


def test_a_metadata_log_is_read_at_its_end_or_at_a_moment() -> None:
    at_end = read(REAL / "kraft" / "__cluster_metadata-0")
    assert at_end.view.partitions.count == read(REAL / "kraft" / "__cluster_metadata-0").view.partitions.count
    assert (
        0 < read(REAL / "kraft" / "__cluster_metadata-0", at="80").view.partitions.count < at_end.view.partitions.count
    )


def test_of_several_clusters_one_is_to_be_named(tmp_path: Path) -> None:
    one = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[%s]}]}'
    both = tmp_path / "both.txt"
    both.write_text(f"Current partition replica assignment\n{one % 1}\nProposed partition reassignment\n{one % 2}\n")
    with pytest.raises(UsageError) as caught:
        read(both)
    wanted = f"{both} describes 2 clusters ('both (current)', 'both (proposed)'); choose one with --cluster NAME"
    assert str(caught.value) == wanted
    assert read(both, cluster="both (proposed)").view.broker_ids.tolist() == [2]
    with pytest.raises(UsageError, match=r"--cluster 'x': no single cluster of .* bears this name; there are 'both"):
        read(both, cluster="x")


def test_rejected_rows_are_counted_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.txt").write_text(DESCRIBE + "\tTopic: t\tPartition: x\tLeader: 2\tReplicas: 2,1\tIsr: 2\n")
    read(tmp_path / "d.txt", partial=True)
    assert capsys.readouterr().err.startswith("brokerside: warning: 1 of 4 rows were put aside; the first: ")


def test_a_table_that_is_piped_is_not_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS says how wide the terminal is, not the pipe; headings were cut to "headin…" there."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a long heading {number}" for number in range(12)]
    give_answer(
        NOTHING, kind="outage", summary={}, tables={}, shown=[shown_table("T", names, [["1,000,000"] * 12])], views=()
    )
    title, heading, row = capsys.readouterr().out.splitlines()
    assert title.strip() == "T"
    assert re.split(r" {2,}", heading.strip()) == names
    assert row.split() == ["1,000,000"] * 12


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\n", "is empty; nothing describes a cluster"),
        (
            '{"brokers":[{"id":1,"name":"a:1"},{"id":2,"name":"b:1"}],"topics":[]}',
            "has 2 brokers and no partition, so there is nothing to look at",
        ),
        (
            DESCRIBE.split("\n", 1)[1],
            "not every partition is listed, as in a filtered describe",
        ),
        (DESCRIBE.rsplit("\n", 2)[0], "t declares 2 partitions, 1 is listed; kafka-topics"),
    ],
)
def test_a_dump_that_is_no_whole_cluster_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "dump").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read(tmp_path / "dump")
    for name in ("prod.txt", "stage.txt"):
        (tmp_path / name).write_text(DESCRIBE)
    (tmp_path / "dump").unlink()
    with pytest.raises(UsageError, match=r"^DUMP describes 2 clusters \('prod', 'stage'\); choose one with --cluster"):
        read(tmp_path)
    assert read(tmp_path, cluster="stage").view.name == "stage"


@pytest.mark.parametrize(
    ("at", "is_said"), [("404", False), ("405", True), ("2026-11-22T17:31", False), ("2099-01-01", True)]
)
def test_a_moment_beyond_the_end_of_a_log_is_said(at: str, is_said: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert read(REAL / "kraft-4.3" / "__cluster_metadata-0", at=at).view.partitions.count
    assert ("beyond the end of the log, offset 404; the end is taken" in capsys.readouterr().err) == is_said


NORTH, SOUTH = (REAL / f"reported/daily/{name}-2026-11-28.txt" for name in ("north", "south"))


@pytest.mark.parametrize("command", ["roll", "outage", "plan", "impact"])
def test_a_cluster_is_chosen_by_its_name_without_the_date(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").write_text('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}')
    plan = [str(tmp_path)] if command == "impact" else []
    more = ["--despite-out-of-sync"] if command == "roll" else []
    found = []
    for dump, name in ((NORTH.parent, "north"), (NORTH.parent, NORTH.stem), (NORTH, "north")):
        run(brokerside, "brokerside", [command, str(dump), *plan, "--cluster", name, "--json", *more])
        out, err = capsys.readouterr()
        found.append(json.loads(out)["known"])
        told = "brokerside: note: --cluster north: taken is the last of 2 moments, 2026-11-28\n"
        assert (told in err) == (dump != NORTH and name == "north")
    assert found[0] == found[1] == found[2]
    assert run(brokerside, "brokerside", [command, str(NORTH), *plan, "--cluster", "south"]) == 2
    assert "there are 'north-2026-11-28'" in capsys.readouterr().err


def test_impact_takes_the_folder_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "planned"
    assert run(brokerside, "brokerside", ["plan", str(SOUTH), "--out", str(folder)]) == 0
    capsys.readouterr()
    said = []
    for plan in (folder, folder / "plan.json"):
        assert run(brokerside, "brokerside", ["impact", str(SOUTH), str(plan), "--json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert run(brokerside, "brokerside", ["impact", str(SOUTH), str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"brokerside: {tmp_path / 'plan.json'}: ")


@pytest.mark.parametrize(
    ("dumps", "option", "hinted"),
    [
        ([NORTH.parent], (), True),
        ([NORTH, SOUTH], (), False),
        ([NORTH.parent], ("--moments",), False),
        ([NORTH.parent], ("--separate",), False),
    ],
)
def test_a_report_of_dated_names_hints_at_moments(
    dumps: list[Path], option: tuple[str, ...], hinted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(brokerside, "brokerside", ["report", *map(str, dumps), *option, "--out", str(tmp_path)]) == 0
    said = "brokerside: note: north, south: several dates; --moments orders them, and says what got worse\n"
    assert (said in capsys.readouterr().err) == hinted
