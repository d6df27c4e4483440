"""Several clusters over several days: which dumps are moments of one cluster, in which order, and what got worse."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.sources.dated_names import of_path
from spark_analysis.sources.inputs import dump_inputs, with_sizes_of
from spark_analysis.sources.series import grouping_of

DAILY = Path(__file__).parents[2] / "real_data" / "reported" / "daily"
GATES = ("--fail-on", "leaderless,under-replicated")
ALL = ("north-27", "north-28", "south-27", "south-28")


def laid_out(folder: Path, names: dict[str, str]) -> Path:
    """Copy days of clusters, called like north-27, under the given names; compress those that end in .gz."""
    for dump, name in names.items():
        data = (DAILY / f"{dump[:-2]}2026-11-{dump[-2:]}.txt").read_bytes()
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def reported(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any], list[str], str]:
    """Return the status, report.json, and the lines on both streams."""
    out = folder.parent / "out"
    status = run(
        brokerside,
        "brokerside",
        ["report", str(folder), "--moments", *GATES, *options, "--quiet", "--out", str(out)],
    )
    shown, err = capsys.readouterr()
    return status, json.loads((out / "report.json").read_text()), shown.splitlines(), err


@pytest.mark.parametrize(
    "spelling",
    [
        "{cluster}-2026-11-{day}.txt",
        "{cluster}_202611{day}.txt.gz",
        "202611{day}-{cluster}.txt",
        "{cluster}-2026-11-{day}T06:30:00Z.txt",
        "2026-11-{day}/{cluster}.txt",
        "2026/11/{day}/{cluster}.txt",
        "{cluster}/2026-11-{day}.txt",
        "{cluster}/{day}.11.2026.txt",
        "{cluster}-2026-11-27T0{day[1]}-30.txt",
        "{cluster}.txt.{back}",
        "{cluster}.{day[1]}.txt",
    ],
)
@pytest.mark.parametrize("called", [("north", "south"), ("kafka-1", "kafka-2"), ("kafka1", "kafka10")])
def test_clusters_are_told_apart_by_name_and_days_put_in_order(
    spelling: str, called: tuple[str, str], tmp_path: Path
) -> None:
    names = {}
    for dump in ALL:
        cluster, day = called[dump.startswith("south")], dump[-2:]
        names[dump] = spelling.format(cluster=cluster, day=day, back=29 - int(day))
    folder = laid_out(tmp_path / "dumps", names)
    found = dump_inputs((str(folder),), None, True)
    expected = [(called[dump.startswith("south")], folder / names[dump]) for dump in ALL]
    for cluster in called:  # Each in order of time.
        assert [Path(dump.path) for dump in found if dump.cluster == cluster] == [
            path for name, path in expected if name == cluster
        ]
    assert len({dump.name for dump in found}) == 4
    assert [dump.missed for dump in found] == [None] * 4


def test_what_got_worse_and_how_moments_were_taken_is_said_everywhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = laid_out(tmp_path / "dumps", {dump: f"{dump[:-2]}2026-11-{dump[-2:]}.txt" for dump in ALL})
    status, said, lines, err = reported(folder, capsys)
    assert status == 1
    assert "failed: north-2026-11-28: 2 partitions have no leader" in err
    page = (tmp_path / "out" / "report.html").read_text()
    worse = said["since_last_time"][0]["worse"][0]["words"]
    assert worse == "2 partitions have no leader (0 before)"
    how = said["grouping"]
    assert how == (
        "clusters by the file names, moments by the dates or numbers in them "
        "(north 2026-11-27 to 2026-11-28, south 2026-11-27 to 2026-11-28)"
    )
    assert "Moments: clusters by the file names, moments by the dates or numbers in them." in lines
    start = lines.index("What got worse since the last time:")
    assert lines[start + 1].startswith(f"  north since 2026-11-27: {worse}; ")
    assert lines[start + 2] == "  south: nothing got worse"
    for text in (how, worse, "nothing got worse"):
        assert text in page, text
    assert [(one["cluster"], one["is_now"]) for one in said["moments"]] == [
        ("north-2026-11-27", False),
        ("north-2026-11-28", True),
        ("south-2026-11-27", False),
        ("south-2026-11-28", True),
    ]
    assert [one["cluster"] for one in said["first_to_look_at"]] == ["north-2026-11-28", "south-2026-11-28"]
    places = {one["cluster"][:-3]: one["place"] for one in said["clusters"] if one["is_now"]}
    assert places == {"north-2026-11": 1, "south-2026-11": 2}  # What is past comes after all that is now.


def test_a_cluster_that_misses_the_last_day_is_named_and_its_last_moment_is_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = {"south-27": "south-20261127.txt", "north-28": "north-20261127.txt", "south-28": "south-20261128.txt"}
    status, said, lines, err = reported(laid_out(tmp_path / "dumps", names), capsys)
    assert status == 1
    assert "warning: there is no dump of north of 2026-11-28: its last is of 2026-11-27, and is looked at" in err
    assert "  north: no dump of 2026-11-28, the last is of 2026-11-27; no dump before this one" in lines
    assert {one["cluster"]: one["missed_moment"] for one in said["since_last_time"]} == {
        "north": "2026-11-28",
        "south": None,
    }


@pytest.mark.parametrize(("last", "former"), [("north-28", "north"), ("south-28", None)])
def test_a_renamed_cluster_is_known_by_its_topics(
    last: str, former: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A cluster that begins where another ends, with other topics, is new."""
    names = {"north-27": "north-20261127.txt", last: "polar-20261128.txt"}
    _, said, _, _ = reported(laid_out(tmp_path / "dumps", names), capsys)
    polar = next(one for one in said["since_last_time"] if one["cluster"] == "polar")
    assert polar["former_name"] == former
    assert (polar["before"] is None) == (former is None)
    assert len(said["since_last_time"]) == (1 if former else 2)


def test_dumps_without_a_date_are_told_apart_by_their_topics(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    order = ("north-27", "south-27", "north-28", "south-28")
    folder = laid_out(tmp_path / "dumps", dict(zip(order, ("a.txt", "b.txt", "c.txt", "d.txt"), strict=True)))
    status, said, _, _ = reported(folder, capsys)
    assert status == 1
    assert [(one["now"], one["before"]) for one in said["since_last_time"]] == [("c", "a"), ("d", "b")]
    assert said["grouping"] == "in the order of their names, as no file name has a date; clusters by topics in common"


@pytest.mark.parametrize(
    "names",
    [
        ("north-2.txt", "north-10.txt"),
        ("night 9/x.txt", "night 10/x.txt"),
        ("2026-W9/north.txt", "2026-W10/north.txt"),
        ("9-north/x.txt", "10-north/x.txt"),
        ("north.txt", "north (1).txt"),
        ("a9/b10.txt.gz", "a10/b9.txt.gz"),
    ],
)
def test_numbers_in_names_count_as_numbers(
    names: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = laid_out(tmp_path / "dumps", dict(zip(("north-27", "north-28"), names, strict=True)))
    for given in (folder, folder / "*.txt" if "/" not in names[0] else folder / "*" / "*"):
        paths = [dump.path for dump in dump_inputs((str(given),), None, True)]
        assert paths == [str(folder / name) for name in names]
    status, said, _, _ = reported(folder, capsys)
    assert status == 1
    assert [bool(one["worse"]) for one in said["since_last_time"]] == [True]


@pytest.mark.parametrize(
    ("names", "is_said"),
    [
        (("north_31.12.txt", "north_01.01.txt"), True),
        (("north-2026-12-31.txt", "north-2027-01-01.txt"), False),
        (("north-2026-12-31.txt", "polar-2027-01-01.txt"), False),
    ],
)
def test_dumps_of_which_no_two_are_of_one_cluster_are_said_to_be_so(
    names: tuple[str, str], is_said: bool, tmp_path: Path
) -> None:
    folder = laid_out(tmp_path, dict(zip(("north-27", "north-28"), names, strict=True)))
    said = grouping_of(dump_inputs((str(folder),), None, True))
    assert said is not None
    assert ("each is its own cluster, as no two names are alike but for a date with its year" in said) == is_said


def test_files_given_for_dumps_are_no_dumps(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "dumps", {"north-28": "north.txt"})
    (folder / "racks.csv").write_text("1,a\n2,b\n")
    (folder / "link.csv").symlink_to(folder / "racks.csv")
    status, said, _, err = reported(folder, capsys, "--racks", str(folder / "racks.csv"))
    assert (status, said["input_count"], said["unusable_input_count"], err.count("warning")) == (1, 1, 0, 0)
    of_pattern = dump_inputs((str(folder / "*"),), None, True, beside=(f"north={folder / 'racks.csv'}",))
    assert [dump.path for dump in of_pattern] == [str(folder / "north.txt")]


def test_a_name_that_two_clusters_had_one_after_the_other_is_two_clusters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = {"north-28": "north-20261127.txt", "south-28": "north-20261128.txt"}
    status, said, _, _ = reported(laid_out(tmp_path / "dumps", names), capsys)
    assert status == 1
    assert said["cluster_count"] == 2
    assert said["moments"] == []


def test_metadata_logs_of_one_cluster_id_are_one_cluster(tmp_path: Path) -> None:
    for place in ("a/2026-11-27", "b/2026-11-28", "c/2026-11-28"):
        (tmp_path / place / "__cluster_metadata-0").mkdir(parents=True)
        cluster_id = "other" if place[0] == "c" else "same"
        (tmp_path / place / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id}\n")
    inputs = dump_inputs((str(tmp_path),), None, True)
    assert [(dump.cluster, dump.moment) for dump in inputs] == [
        ("b", "2026-11-27"),
        ("b", "2026-11-28"),
        ("c", "2026-11-28"),
    ]


def test_folders_of_folders_are_read_and_what_is_passed_over_is_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = laid_out(tmp_path / "dumps", {dump: f"eu/{dump[:-3]}/2026-11-{dump[-2:]}.txt" for dump in ALL})
    (folder / ".swap").write_text("x")
    (folder / "eu" / "loop").symlink_to(folder)
    shutil.copytree(DAILY.parent / "kafka-3.6-data" / "txn-0", folder / "data")
    (folder / "notes.md").write_text("no dump\n")
    status, said, lines, _ = reported(folder, capsys)
    assert status == 1
    assert (said["input_count"], said["skipped_count"], said["unusable_input_count"]) == (5, 3, 1)
    assert sorted(Path(path).name for path in said["skipped"]) == [".swap", "data", "loop"]
    shown = f"Files: 4 read, 3 skipped (hidden, or logs of brokers, such as {folder / '.swap'}), 1 rejected"
    assert shown in lines


def test_sizes_of_a_cluster_are_those_of_its_last_moment(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "dumps", {dump: f"{dump[:-2]}2026-11-{dump[-2:]}.txt" for dump in ALL})
    inputs = with_sizes_of(dump_inputs((str(folder),), None, True), ("south=sizes.json",))
    assert [dump.sizes for dump in inputs] == [None, None, None, "sizes.json"]


@pytest.mark.parametrize(
    ("path", "cluster", "label"),
    [
        ("north-2026-11-27T06:30:00+02:00.txt", "north", "2026-11-27 04:30"),
        ("2026-11-27/0630/north.txt", "north", "2026-11-27 06:30"),
        ("north-2026-11-27-9am.txt", "north", "2026-11-27 09:00"),
        ("north_2026-11-27_12-05-09 AM.txt", "north", "2026-11-27 00:05:09"),
        ("2026-11-27/1030PM/north.txt", "north", "2026-11-27 22:30"),
        ("north-2026-11-27-10-amsterdam.txt", "north-10-amsterdam", "2026-11-27"),
        ("north-20261127063000.json", "north", "2026-11-27 06:30"),
        ("north-1795824000.txt", "north", "2026-11-28 00:00"),
        ("north-11-27-2026.txt", "north", "2026-11-27"),
        ("north-2026-11-27 (2).txt", "north", "2026-11-27 .2"),
        ("north.txt-20261127.gz", "north", "2026-11-27"),
        ("kafka-3.6-20261127.txt", "kafka-3.6", "2026-11-27"),
        ("kafka-3.6.txt", "kafka-3", ".6"),
        ("10.0.0.1.txt", "10.0.0.1", None),
        ("2026-11-27-kafka-2.txt", "kafka-2", "2026-11-27"),
        ("north-20261301.txt", "north-20261301", None),
        ("kafka-2.txt", "kafka-2", None),
    ],
)
def test_a_path_says_cluster_and_moment(path: str, cluster: str, label: str | None) -> None:
    found = of_path(path)
    assert (found.cluster, found.label) == (cluster, label)
