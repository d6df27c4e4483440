"""The `brokerside` command: which inputs its arguments name, what a whole run leaves, and its exit statuses."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from broker.cli import run
from broker.errors import InputError, UsageError
from spark_analysis.cli.commands import brokerside
from spark_analysis.sources.inputs import dump_inputs, saved_inputs, with_sizes_of

MULTIREGION = Path(__file__).parents[2] / "real_data" / "multiregion"


def test_a_dump_takes_the_name_of_its_file_or_the_one_given() -> None:
    inputs = dump_inputs(("a/prod.txt", "stage=b/x.txt", "a/x.txt"), None, None)
    assert [dump.name for dump in inputs] == ["prod", "stage", "x"]
    assert [dump.path for dump in inputs] == ["a/prod.txt", "b/x.txt", "a/x.txt"]


@pytest.mark.parametrize(
    ("names", "moments", "one_series"),
    [
        (("1-a.txt", "2-b.txt", "10-c.txt"), None, True),
        (("1-a.txt", "2-b.txt"), False, False),
        (("a.txt", "b.txt"), None, False),
        (("a.txt", "b.txt"), True, True),
        (("2-a.txt", "1-b.txt"), None, False),
        (("x/1-a.txt", "y/2-b.txt"), None, False),
        (("1-a.txt",), None, False),
    ],
)
def test_numbered_dumps_of_one_folder_are_moments_of_one_cluster(
    names: tuple[str, ...], moments: bool | None, one_series: bool
) -> None:
    series = {dump.series for dump in dump_inputs(names, None, moments)}
    assert series == ({"moments" if moments else "numbered"} if one_series else {None})


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_an_empty_filtered_describe_is_said_to_be_well_with_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    dump = tmp_path / "urp.txt"
    dump.write_bytes(text)
    assert run(brokerside, "brokerside", ["report", str(dump), "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{dump} is empty: with a filter such as --under-replicated-partitions, kafka-topics")
    assert not (tmp_path / "out").exists()


def test_a_pattern_and_a_directory_stand_for_their_files_and_a_metadata_log_for_itself(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt.gz", ".hidden"):
        (tmp_path / name).write_text("x")
    of_directory = dump_inputs((str(tmp_path),), None, None)
    assert [(dump.name, dump.path) for dump in of_directory] == [
        ("a", str(tmp_path / "a.txt.gz")),
        ("b", str(tmp_path / "b.txt")),
    ]
    assert [dump.name for dump in dump_inputs((str(tmp_path / "*.txt"),), None, None)] == ["b"]
    log = str(MULTIREGION.parent / "kraft-4.3" / "__cluster_metadata-0")
    assert [(dump.path, dump.name) for dump in dump_inputs((log,), None, None)] == [(log, "kraft-4.3")]
    with pytest.raises(InputError, match="no file matches the pattern"):
        dump_inputs((str(tmp_path / "*.json"),), None, None)
    with pytest.raises(UsageError, match="2 files cannot have one name"):
        dump_inputs((f"prod={tmp_path}",), None, None)


def test_standard_input_is_saved_for_executors_and_called_by_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"some bytes")))
    with saved_inputs(dump_inputs(("-", "a.txt"), None, None)) as inputs:
        assert Path(inputs[0].path).read_bytes() == b"some bytes"
        assert [(dump.name, dump.source) for dump in inputs] == [("stdin", "-"), ("a", None)]
    assert not Path(inputs[0].path).exists()
    with pytest.raises(UsageError, match="can be one DUMP only"), saved_inputs(dump_inputs(("-", "x=-"), None, None)):
        pass


def test_sizes_go_to_the_only_cluster_to_the_last_moment_or_to_the_one_named() -> None:
    one = with_sizes_of(dump_inputs(("a.txt",), None, None), ("s.json",))
    assert [dump.sizes for dump in one] == ["s.json"]
    moments = with_sizes_of(dump_inputs(("1-a.txt", "2-b.txt"), None, None), ("s.json",))
    assert [dump.sizes for dump in moments] == [None, "s.json"]
    named = with_sizes_of(dump_inputs(("a.txt", "b.txt"), None, None), ("a=s.json",))
    assert [dump.sizes for dump in named] == ["s.json", None]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (("s.json",), "--sizes 's.json': of 2 clusters; name one of them, as in --sizes NAME=FILE"),
        (("c=s.json",), "--sizes 'c=s.json': no cluster is called 'c'; there are a, b"),
        (("a=s.json", "a=t.json"), "--sizes 'a=t.json': cluster 'a' has sizes already"),
    ],
)
def test_sizes_of_no_clear_cluster_are_refused(sizes: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_sizes_of(dump_inputs(("a.txt", "b.txt"), None, None), sizes)
    assert str(caught.value) == message


def test_every_shipped_recipe_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(brokerside, "brokerside", ["recipes"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "demo" in listed
    assert listed == sorted(listed)
