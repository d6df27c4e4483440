"""A report on many files of which one cannot be used: the others are reported on, and that one is accounted for."""

from __future__ import annotations

import errno
import json
import os
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from spark_analysis.jobs import analyse_dumps
from spark_analysis.kernels import Kernel
from spark_analysis.sources.dumps import DumpInput, read_named
from spark_analysis.tables import schemas
from spark_analysis.tables.batching import TableBatch
from spark_analysis.tables.write import read_table
from tests.spark_analysis.bad_inputs import GOOD, GOOD_ROWS, PACKED, UNUSABLE
from tests.spark_analysis.test_jobs import QUIET, Watched

Capture = pytest.CaptureFixture[str]


@attrs.frozen
class Ran:
    """What a report printed, and its exit status."""

    status: int
    out: str
    err: str


@pytest.fixture
def report(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `brokerside report` in a folder of good.txt and other.txt."""
    monkeypatch.chdir(tmp_path)
    for name in ("good.txt", "other.txt"):
        Path(name).write_bytes(GOOD)

    def call(*words: str) -> Ran:
        capsys.readouterr()
        status = run(brokerside, "brokerside", ["report", *words, "--quiet", "--engine", "local", "--out", "out"])
        return Ran(status, *capsys.readouterr())

    return call


def rows(name: str) -> list[dict[str, Any]]:
    table = next(table for table in schemas.TABLES if table.name == name)
    return read_table(Path("out"), table).to_pylist()


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_file_of_no_use_is_a_fault_row_and_a_warning_beside_good_ones(report: Callable[..., Ran], kind: str) -> None:
    make, reason = UNUSABLE[kind]
    make(Path("bad"))
    ran = report("good.txt", "bad", "other.txt")
    assert ran.status == 0
    assert ran.out.startswith("Dumps of 2 clusters, from 3 inputs, of which 1 cannot be used.\n")
    first, second = ran.err.splitlines()
    assert first.startswith(f"brokerside: warning: 1 of 3 inputs cannot be used; the first: bad{reason}")
    assert second.startswith(f"brokerside: warning: 1 of {2 * GOOD_ROWS + 1} rows were put aside; ")
    accounts = {row["source"]: row for row in rows("inputs")}
    assert [accounts[name]["fault"] for name in ("good.txt", "other.txt")] == [None, None]
    assert accounts["bad"]["fault"].startswith(f"bad{reason}")
    assert [row["rows_in"] for row in accounts.values()] == [
        row["rows_analysed"] + row["rows_rejected"] for row in accounts.values()
    ]
    assert (accounts["bad"]["rows_in"], accounts["bad"]["rows_rejected"], accounts["bad"]["cluster_count"]) == (1, 1, 0)
    (reject,) = rows("rejects")
    assert reject["source"] == "bad"
    assert reason.lstrip(":1 ").startswith(reject["reason"][: len(reason.lstrip(":1 "))])
    assert {row["cluster"] for row in rows("clusters")} == {"good", "other"}
    page = Path("out/report.html").read_text()
    assert "1 input cannot be used" in page
    assert reject["reason"].split(":")[0] in page
    assert "\nbrokerside_inputs_unusable 1\n" in Path("out/report.prom").read_text()


def test_strict_and_a_gate_fail_for_a_file_of_no_use(report: Callable[..., Ran]) -> None:
    """Of a cluster that could not be read nothing says that all is well."""
    Path("bad.txt").write_bytes(b"")
    assert report("good.txt", "bad.txt", "--strict").status == 1
    assert report("good.txt", "other.txt", "--strict").status == 0
    assert report("good.txt", "other.txt", "--fail-on", "leaderless").status == 0
    failed = report("good.txt", "bad.txt", "--fail-on", "leaderless")
    assert failed.status == 1
    assert failed.err.splitlines()[-1] == (
        "brokerside: failed: bad.txt: the input is empty; nothing is known of its cluster"
    )


@pytest.mark.parametrize("kind", [kind for kind in UNUSABLE if kind != "empty"])
def test_files_of_no_use_alone_are_one_sentence_and_status_2(report: Callable[..., Ran], kind: str) -> None:
    make, reason = UNUSABLE[kind]
    make(Path("bad"))
    alone = report("bad")
    assert (alone.status, alone.out, alone.err.count("\n")) == (2, "", 1)
    assert alone.err.startswith(f"brokerside: bad{reason}")
    Path("empty").write_bytes(b"")
    both = report("empty", "bad", "--json")
    assert (both.status, both.out) == (2, "")
    assert both.err == "brokerside: none of the 2 inputs can be used; the first: empty: the input is empty\n"
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("good.txt", "gone.txt"),
        ("good.txt", "other.txt", "--sizes", "good=gone.txt"),
        ("good.txt", "other.txt", "--groups", "good=gone.txt", "--ask", "consumers"),
    ],
)
def test_a_file_that_an_argument_names_and_that_is_not_there_is_status_2(
    report: Callable[..., Ran], words: Sequence[str]
) -> None:
    ran = report(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "brokerside: gone.txt: cannot be read: no such file or directory\n"
    assert not Path("out").exists()


def test_a_file_name_that_is_no_text_is_read_and_shown_with_escapes(report: Callable[..., Ran]) -> None:
    Path("d").mkdir()
    for name in (b"d/caf\xe9.txt", "d/\u202egood\x1b[31m.txt".encode()):
        Path(os.fsdecode(name)).write_bytes(GOOD)
    ran = report("d/*")
    assert (ran.status, ran.err) == (0, "")
    assert {row["source"] for row in rows("inputs")} == {"d/caf\\xe9.txt", "d/\u202egood\x1b[31m.txt"}
    gauges = Path("out/report.prom").read_text()
    assert '{cluster="caf\\\\xe9"' in gauges
    assert '{cluster="\\\\u202egood\\\\x1b[31m"' in gauges
    assert all(line.isprintable() for line in gauges.splitlines())


def vanishing(kernel: Kernel) -> Kernel:
    """Run a kernel after a file that was there has gone."""

    def run(numbers: Iterable[int]) -> Iterator[TableBatch]:
        os.remove("other.txt")
        return kernel(numbers)

    return run


@pytest.mark.usefixtures("report")
def test_a_file_that_vanishes_while_a_job_runs_is_a_fault_row() -> None:
    inputs = [DumpInput("other.txt"), DumpInput("good.txt")]
    analyse_dumps(Watched(vanishing), inputs, None, Path("out"), progress=QUIET)
    assert [row["fault"] for row in rows("inputs")] == [
        "other.txt: cannot be read: no such file or directory", None,
    ]  # fmt: skip


def test_a_file_without_permission_is_a_fault_row(report: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every file, so that the system is made to refuse."""
    opened = Path.open

    def refused(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == "other.txt":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", refused)
    assert report("good.txt", "other.txt").status == 0
    assert rows("rejects")[0]["reason"] == "cannot be read: permission denied"


def test_a_moment_of_no_use_is_passed_over_and_the_next_is_compared_with_the_one_before(
    report: Callable[..., Ran],
) -> None:
    for number, data in enumerate((GOOD, PACKED[:-20], GOOD.replace(b"Leader: 1", b"Leader: 2")), start=1):
        Path(f"{number}-moment").write_bytes(data)
    assert report("1-moment", "2-moment", "3-moment").status == 0
    assert [(row["cluster"], row["previous_cluster_id"]) for row in rows("clusters")] == [
        ("1-moment", None), ("3-moment", 0),
    ]  # fmt: skip
    assert {(row["from_cluster"], row["to_cluster"]) for row in rows("changes")} == {("1-moment", "3-moment")}


def test_a_pipe_is_not_waited_for_and_is_a_fault_row_among_others(report: Callable[..., Ran]) -> None:
    os.mkfifo("pipe")
    what = "pipe: not a regular file; executors read files, so save its content to one first"
    ran = report("good.txt", "pipe", "other.txt")
    assert (ran.status, rows("inputs")[1]["fault"]) == (0, what)
    for words in (("pipe",), ("good.txt", "--racks", "pipe"), ("good.txt", "--sizes", "pipe")):
        ran = report(*words)
        assert (ran.status, ran.out, ran.err) == (2, "", f"brokerside: {what}\n"), words


_LINE = "Topic: a\tPartitionCount: {0}\tReplicationFactor: {1}\tConfigs: \n"
_ROW = "\tTopic: a\tPartition: {0}\tLeader: 1\tReplicas: 1\tIsr: 1\n"
_KCAT = '{{"brokers":[{{"id":1,"name":"x"}}],"topics":[{{"topic":"a","partitions":[{0},{1}]}}]}}'
_PART = '{{"partition":{0},"leader":1,"replicas":[{{"id":1}}],"isrs":[{{"id":1}}]}}'
_MOVE = '{{"topic":"a","partition":{0},"replicas":[1,2]}}'


@pytest.mark.parametrize(
    "text",
    [
        _LINE.format(10**12, 1) + _ROW.format(0),
        _LINE.format(1, 10**12) + _ROW.format(0),
        _LINE.format(1, 1) + _ROW.format(10**12) + _ROW.format(0),
        _KCAT.format(_PART.format(10**12), _PART.format(0)),
        '{"version":1,"partitions":[' + _MOVE.format(10**12) + "," + _MOVE.format(0) + "]}",
    ],
)
def test_a_count_of_a_million_millions_is_put_aside_without_memory_for_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "huge").write_text(text)
    tracemalloc.start()
    try:
        dump = read_named(DumpInput(str(tmp_path / "huge")))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (reject,) = dump.rejects
    assert str(10**12) in reject.reason
    assert (dump.rows_in, dump.rows_analysed) == (dump.rows_rejected + dump.rows_analysed, dump.rows_in - 1)
    assert dump.clusters[0].partitions.count <= 1
    assert peak_bytes < 16 << 20


ENDLESS = Path("/dev/zero")


@pytest.mark.skipif(not ENDLESS.exists(), reason=f"needs {ENDLESS}")
@pytest.mark.parametrize(
    "words",
    [
        ("groups", "assign", ENDLESS),
        ("groups", "assign", "group.json", "--previous", ENDLESS),
        ("groups", "assign", "members.txt", "--topics", ENDLESS),
        ("groups", "simulate", "--events", ENDLESS),
        ("assign", "--brokers", "0-2", "--racks", ENDLESS, "orders:1:1"),
        ("assign", "--from", ENDLESS, "orders:1:1"),
        ("assign", "--grow", ENDLESS, "--brokers", "0-2", "orders:4"),
    ],
    ids=lambda words: next(str(word) for word in words if str(word).startswith("--") or word == ENDLESS),
)
def test_a_file_without_an_end_is_refused_at_the_limit(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    topics, members = [{"topic": "orders", "partitions": 3}], [{"member_id": "a", "topics": ["orders"]}]
    Path("group.json").write_text(json.dumps({"topics": topics, "members": members}))
    names, cells = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID"), ("billing", "a", "/10.0.0.1", "a")
    printed = [*zip(names, cells, strict=True), ("#PARTITIONS", "1"), ("ASSIGNMENT", "orders(0)")]
    Path("members.txt").write_text("".join("".join(f"{row[at]:14}" for row in printed) + "\n" for at in (0, 1)))
    assert run(brokerside, "brokerside", [str(word) for word in words]) == 2
    assert re.fullmatch(
        r"brokerside: zero: larger than the [\d,]+ bytes allowed for such a file\n", capsys.readouterr().err
    )
