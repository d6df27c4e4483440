"""`brokerside log`: output, exit statuses, and that the input is never changed unasked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click
import pytest
from click.testing import CliRunner

from broker.cli import EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_USAGE, run, summary_of
from broker.wording import printable
from log.cli.main import COMMANDS, log
from log.cli.output import CHARACTERS_PER_WRITE, write_lines
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.segments.file_names import LOG
from log.storage import FileStorage
from log.storage.checkpoints import RECOVERY_POINT_FILE
from tests.architecture.house import ROOT
from tests.log.samples import CONFIG, DIRECTORY, START_MS, write_sample

COMPACTED = ("--config", "cleanup.policy=compact", "--now-ms", "1700000100000")


@attrs.frozen
class Answer:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def answer(*words: object, given: str = "") -> Answer:
    """Run the command as the program does."""
    statuses: list[int] = []

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def program(arguments: Sequence[str]) -> None:
        statuses.append(run(log, "brokerside log", list(arguments)))

    result = CliRunner().invoke(program, [str(word) for word in words], input=given, catch_exceptions=False)
    return Answer(statuses[0], result.stdout, result.stderr)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_sample("none", tmp_path / "logs")
    return tmp_path / "logs" / DIRECTORY


def damaged(partition: Path) -> Path:
    path = sorted(partition.glob(f"*{LOG}"))[1]
    content = bytearray(path.read_bytes())
    content[300] ^= 1
    path.write_bytes(content)
    return path


def test_dump_prints_batches_and_with_print_data_log_keys_and_values(partition: Path) -> None:
    segment = partition / "00000000000000000000.log"
    shallow = answer("dump", segment)
    assert shallow.status == 0
    assert shallow.lines[:2] == [f"Dumping {segment}", "Log starting offset: 0"]
    assert all(line.startswith("baseOffset: ") for line in shallow.lines[2:])
    deep = answer("dump", segment, "--print-data-log")
    assert deep.lines[4].startswith("| offset: 1 CreateTime: 1700000000001 keySize: 5 valueSize: 8 sequence: -1")
    assert deep.lines[4].endswith("headerKeys: [] key: key-1 payload: value 0 ")


def test_dump_takes_a_range_of_offsets_and_other_decoders(partition: Path) -> None:
    how = ("--json", "--print-data-log", "--key-decoder", "hex", "--start-offset", 4, "--end-offset", 6)
    rows = [json.loads(line) for line in answer("dump", partition, *how).lines]
    records = [row for row in rows if row["type"] == "record"]
    assert [(row["offset"], row["key"]) for row in records] == [(4, "6b65792d32"), (5, "6b65792d33")]
    assert [row["baseOffset"] for row in rows if row["type"] == "batch"] == [3]


def test_dump_of_a_whole_log_directory_shows_every_file_it_knows(partition: Path) -> None:
    (partition.parent / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 180\n")
    (partition.parent / "notes.txt").write_text("not ours")
    found = answer("dump", partition.parent)
    assert found.status == 0
    assert "topic: topic partition: 0 offset: 180" in found.lines
    assert "epoch: 1 startOffset: 60" in found.lines
    names = [line for line in found.lines if line.startswith("Dumping ")]
    assert len(names) == len(list(partition.iterdir())) + 1


def test_dump_sends_raw_bytes_into_a_pipe_and_to_a_terminal_nothing_that_it_would_obey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_file = tmp_path / "leader\x1b[31m-0"
    write_sample("none", log_file)
    found = answer("dump", log_file / DIRECTORY / "00000000000000000000.log")
    assert "leader\x1b[31m-0" in found.lines[0]
    monkeypatch.setattr("log.cli.dump.is_terminal", lambda: True)
    found = answer("dump", log_file / DIRECTORY / "00000000000000000000.log")
    assert "\x1b" not in found.out
    assert "leader\\x1b[31m-0" in found.lines[0]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (f"{900:020d}.index", f"cannot be compared, as {900:020d}.log is not beside it"),
        (f"{900:020d}.timeindex", f"cannot be compared, as {900:020d}.log is not beside it"),
        ("names.log", "its name does not begin with an offset of 20 digits"),
        (f"{901:020d}.log", "cannot be read: it is a link, and links are not followed"),
    ],
)
def test_dump_of_several_files_prints_nothing_if_one_of_them_cannot_be_dumped(
    partition: Path, name: str, reason: str
) -> None:
    segment, bad = partition / f"{0:020d}.log", partition / name
    if "link" in reason:
        bad.symlink_to(segment)
    else:
        bad.write_bytes(b"")
    found = answer("dump", segment, bad)
    assert (found.status, found.out, found.err) == (EXIT_USAGE, "", f"brokerside log: {bad}: {reason}\n")
    going = answer("dump", bad, segment, "--keep-going")
    assert going.status == EXIT_REFUSED
    assert going.out.endswith(answer("dump", segment).out)
    assert reason in going.err
    assert answer("dump", segment, partition / "leader-epoch-checkpoint").status == 0


def test_dump_of_an_index_as_json_needs_no_log_beside_it(partition: Path) -> None:
    (partition / f"{0:020d}.log").unlink()
    assert answer("dump", partition / f"{0:020d}.index", "--json").status == 0


def test_dump_stops_at_damage_with_status_1_and_goes_on_if_asked(partition: Path) -> None:
    path = damaged(partition)
    size = path.read_bytes()
    path.write_bytes(size[:8] + b"\0\0\0\1" + size[12:])
    stopped = answer("dump", path)
    assert (stopped.status, len(stopped.lines)) == (EXIT_REFUSED, 2)
    what = "Record size 1 is less than the minimum record overhead (14)"
    assert stopped.err == f"{path}: at byte 0, batch at offset 30: {what}\n"
    went_on = answer("dump", path, "--keep-going")
    assert (went_on.status, len(went_on.lines) > 4) == (EXIT_REFUSED, True)
    assert went_on.err.startswith(f"{path}: at byte 0, batch at offset 30: ")
    assert re.search(r"\npassed over: [\d,]+ bytes, 1 batch\n$", went_on.err)


@pytest.mark.parametrize("how", [(), ("--json",), ("--keep-going", "--json")])
def test_dump_reports_a_wrong_checksum_with_status_1(partition: Path, how: tuple[str, ...]) -> None:
    path = damaged(partition)
    found = answer("dump", path, *how)
    assert found.status == EXIT_REFUSED
    assert re.match(rf"{path}: at byte \d+, batch at offset \d+: Record is corrupt \(stored crc = ", found.err)
    if "--keep-going" not in how:
        shown = '"isvalid": false' if how else "isvalid: false"
        assert sum(shown in line for line in found.lines) == 1


@pytest.mark.parametrize("how", [(), ("--json",), ("--keep-going",)])
def test_dump_reports_a_torn_tail_with_status_1(partition: Path, how: tuple[str, ...]) -> None:
    path = sorted(partition.glob(f"*{LOG}"))[-1]
    path.write_bytes(path.read_bytes()[:-1])
    found = answer("dump", path, *how)
    assert found.status == EXIT_REFUSED
    assert re.match(rf"{path}: at byte \d+, batch at offset \d+: the last \d+ bytes are not a whole batch\n", found.err)


@pytest.mark.parametrize("command", ["dump", "verify", "stats"])
def test_reading_changes_nothing(partition: Path, command: str) -> None:
    damaged(partition)
    before = contents(partition.parent)
    answer(command, partition)
    answer(command, partition.parent, "--json")
    assert contents(partition.parent) == before


def test_verify_reports_each_damage_and_what_was_passed_over(partition: Path) -> None:
    path = damaged(partition)
    found = answer("verify", partition, "--keep-going")
    assert found.status == EXIT_REFUSED
    assert found.lines[0].startswith(f"{path}: at byte ")
    assert found.lines[-2].endswith("59 batches, 177 records: 1 damaged place")
    assert found.lines[-1].startswith("passed over: ")
    rows = [json.loads(line) for line in answer("verify", partition, "--keep-going", "--json").lines]
    assert rows[0]["file"] == str(path)
    assert (rows[-1]["damages"], rows[-1]["skipped_batch_count"]) == (1, 1)
    stopped = json.loads(answer("verify", partition, "--json").lines[0])
    assert stopped == rows[0]
    assert stopped["batch_offset"] is not None


def test_stats_in_json_has_a_row_for_each_segment_and_one_for_all(partition: Path) -> None:
    rows = [json.loads(line) for line in answer("stats", partition, "--json", "--now-ms", START_MS).lines]
    segments = sorted(str(path) for path in partition.glob(f"*{LOG}"))
    assert [row["file"] for row in rows] == [*segments, "total"]
    assert rows[-1]["records"] == sum(row["records"] for row in rows[:-1]) == 180
    assert rows[-1]["compaction"]["recordsBefore"] == 180
    assert rows[-1]["compaction"]["recordsAfter"] < 20


def test_stats_of_several_partitions_have_no_range_of_offsets(partition: Path) -> None:
    shutil.copytree(partition, partition.parent / "other-7")
    rows = [json.loads(line) for line in answer("stats", partition.parent, "--json").lines]
    assert (rows[-1]["records"], rows[-1]["firstOffset"], rows[-1]["lastOffset"]) == (360, None, None)
    assert rows[0]["firstOffset"] == 0


def test_compact_works_on_a_copy_and_says_what_it_did(partition: Path, tmp_path: Path) -> None:
    before = contents(partition.parent)
    found = answer("compact", partition, "--out", tmp_path / "out", *COMPACTED)
    assert (found.status, found.err) == (0, "")
    assert contents(partition.parent) == before
    assert any(line.startswith("topic-0: before ") for line in found.lines)
    copied = PartitionLog.open(
        FileStorage(tmp_path / "out"), DIRECTORY, CONFIG, LastShutdown(clean=True), now_ms=START_MS
    )
    assert copied.log_end_offset == 180
    assert copied.size_bytes < sum(len(data) for name, data in before.items() if name.endswith(LOG))
    assert answer("verify", tmp_path / "out").status == 0


def test_a_copy_never_overwrites(partition: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / DIRECTORY).mkdir(parents=True)
    found = answer("compact", partition, "--out", tmp_path / "out", *COMPACTED)
    assert found.status == EXIT_USAGE
    there = tmp_path / "out" / DIRECTORY
    assert (found.out, found.err) == (
        "",
        f"brokerside log: {there}: is there already; a copy goes to a new directory\n",
    )


def test_in_place_asks_and_does_nothing_without_a_yes(partition: Path) -> None:
    before = contents(partition.parent)
    found = answer("compact", partition, "--in-place", *COMPACTED, given="n\n")
    assert found.status == EXIT_USAGE
    assert "changes these files" in found.out
    assert "Change these files?" in found.err
    assert contents(partition.parent) == before


def test_in_place_after_a_yes_changes_the_files(partition: Path) -> None:
    before = contents(partition.parent)
    assert answer("compact", partition, "--in-place", *COMPACTED, "--include-active", given="y\n").status == 0
    after = contents(partition.parent)
    assert sum(map(len, after.values())) < sum(map(len, before.values()))
    assert answer("verify", partition).status == 0
    assert answer("compact", partition, "--in-place", "--yes", *COMPACTED).status == 0


def test_recover_cuts_at_damage_and_says_why(partition: Path, tmp_path: Path) -> None:
    path = damaged(partition)
    found = answer("recover", partition, "--out", tmp_path / "out", "--now-ms", START_MS)
    assert found.status == 0
    assert any(str(path) in line and "crc" in line for line in found.lines)
    assert any(line.strip().endswith("bytes were cut") for line in found.lines)
    assert answer("verify", tmp_path / "out").status == 0


def test_recover_says_what_it_did_not_look_at(partition: Path, tmp_path: Path) -> None:
    damaged(partition)
    (partition.parent / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 170\n")
    trusting = answer("recover", partition, "--out", tmp_path / "trusting")
    assert trusting.lines[-2:] == [
        "  nothing was cut",
        "  what is below the recovery point, 170, was taken as it is",
    ]
    looking = answer("recover", partition, "--out", tmp_path / "looking", "--recovery-point", 0)
    assert "bytes were cut" in looking.out
    assert "recovery point" not in looking.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compact", "{}", "--out", "{}/new"], "/new lies in "),
        (["dump", "{}", "--out", "{}"], ", which is only read"),
        (["dump", "{}", "--out", "x", "--start-offset", "9"], "--out writes whole segments"),
        (["dump", "{}", "--out", "x", "--json"], "--json has no effect with --out; leave out one of the two"),
        (["dump", "{}", "--out", "x", "--deep-iteration"], "--deep-iteration has no effect with --out"),
        (["dump", "{}", "--out", "x", "--key-decoder", "hex"], "--key-decoder has no effect with --out"),
        (
            ["stats", "{}/leader-epoch-checkpoint"],
            "/leader-epoch-checkpoint: neither this nor anything else named is or",
        ),
        (["compact", "{}"], "say where to work: --out DIR for a copy, or --in-place, one of the two"),
        (["compact", "{}", "--in-place", "--out", "x"], "say where to work: --out DIR for a copy"),
        (["compact", "{}/..", "--in-place"], "of a log directory, name the topics to compact by --topic"),
        (["recover", "{}/00000000000000000000.log", "--in-place"], "is not a partition's directory"),
        (["compact", "{}", "--out", "x", "--config", "segment.bytes"], "the form is NAME=VALUE"),
        (["compact", "{}", "--out", "x", "--config", "segment.byte=1"], "there is no topic setting 'segment.byte'"),
        (["dump", "{}", "--start-offset", "9", "--end-offset", "3"], "--end-offset 3 is below --start-offset 9"),
        (["dump", "{}", "--out", "x"], "--out needs pyarrow; it is part of `brokerside log dump`"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(partition: Path, words: list[str], sentence: str) -> None:
    found = answer(*(word.format(partition) for word in words))
    assert found.status == EXIT_USAGE
    assert sentence in found.err
    assert found.err.count("\n") == 1


def test_a_path_without_log_files_is_wrong_usage(tmp_path: Path) -> None:
    found = answer("verify", tmp_path)
    assert (found.status, found.out) == (EXIT_USAGE, "")
    assert found.err == f"brokerside log: {tmp_path}: holds no segment, checkpoint or other file of a log\n"


@pytest.mark.parametrize("command", ["dump", "verify", "stats"])
def test_a_file_that_is_none_of_a_log_is_wrong_usage(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("hi")
    found = answer(command, tmp_path / "notes.txt")
    assert (found.status, found.out) == (EXIT_USAGE, "")
    assert found.err.endswith("notes.txt: is no segment, checkpoint or other file of a log\n")


def test_files_of_one_directory_are_measured_as_the_directory_is(partition: Path) -> None:
    how = ("--json", "--now-ms", START_MS)
    whole = answer("stats", partition, *how)
    assert answer("stats", *sorted(partition.glob(f"*{LOG}"), reverse=True), *how) == whole
    assert answer("stats", partition, partition / "..", partition.parent, *how) == whole


def test_a_segment_that_a_broker_left_on_its_way_is_read_when_it_is_named(partition: Path) -> None:
    plain = answer("dump", partition / "00000000000000000000.log").lines[1:]
    for ending in (".log", ".index"):
        path = partition / f"00000000000000000000{ending}"
        path.rename(path.with_name(f"{path.name}.deleted"))
    gone = partition / "00000000000000000000.log.deleted"
    assert answer("dump", gone).lines == [f"Dumping {gone}", *plain]
    assert answer("verify", gone).lines == ["2 files, 10 batches, 30 records: no damage"]
    assert str(gone) not in answer("dump", partition).out


def test_a_link_that_is_named_is_followed_and_one_in_a_directory_is_reported(partition: Path, tmp_path: Path) -> None:
    name = "00000000000000000000.log"
    (tmp_path / "t-0").mkdir()
    link = tmp_path / "t-0" / name
    link.symlink_to(partition / name)
    assert answer("verify", link).status == 0
    found = answer("verify", tmp_path / "t-0")
    assert found.err == f"brokerside log: {link}: cannot be read: it is a link, and links are not followed\n"


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["dump", "--keep-going"], "lastOffset: 179 "),
        (["verify", "--keep-going"], "52 batches, 156 records"),
        (["stats"], "│ 52, 156 "),
    ],
)
def test_a_file_that_cannot_be_opened_does_not_keep_the_others_from_being_read(
    partition: Path, words: list[str], rest: str
) -> None:
    path = sorted(partition.glob(f"*{LOG}"))[1]
    path.unlink()
    path.symlink_to("elsewhere")
    found = answer(*words, partition)
    assert found.status == EXIT_REFUSED
    assert f"{path}: cannot be read: it is a link" in found.out + found.err
    assert rest in found.out


@pytest.mark.parametrize("command", ["verify", "recover"])
def test_a_name_with_an_offset_that_no_log_has_is_one_sentence(tmp_path: Path, command: str) -> None:
    (tmp_path / "t-0").mkdir()
    path = tmp_path / "t-0" / "99999999999999999999.log"
    write_sample("none", tmp_path)
    path.write_bytes((tmp_path / DIRECTORY / "00000000000000000000.log").read_bytes())
    out = () if command == "verify" else ("--out", tmp_path / "out")
    found = answer(command, tmp_path / "t-0", *out)
    assert found.status == EXIT_USAGE
    assert found.err == f"brokerside log: {path}: its name begins with an offset above 9223372036854775807\n"


def test_a_copy_to_recover_has_what_a_broker_was_swapping_in(partition: Path, tmp_path: Path) -> None:
    for path in partition.glob("00000000000000000000.*"):
        path.rename(path.with_name(f"{path.name}.swap"))
    found = answer("recover", partition, "--out", tmp_path / "out")
    assert "  log from offset 0 to before 180" in found.lines
    names = [f"{'0' * 20}.{kind}.swap" for kind in ("index", "log", "timeindex")]
    what = f"3 files of a broker in the place of those that they replace: {', '.join(names)}"
    assert [line for line in found.lines if what in line] == [f"  puts {what}", f"  put {what}"]
    assert "cut" not in found.out


@pytest.mark.parametrize("command", [("recover",), ("compact", *COMPACTED)], ids=lambda words: words[0])
def test_files_that_a_broker_left_behind_are_named_before_and_after_they_are_removed(
    partition: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    segment = next(partition.glob(f"*{LOG}"))
    cleaned, *deleted = (f"{segment.name}.cleaned", *(f"{number:020d}.log.deleted" for number in range(500, 503)))
    for name in (cleaned, *deleted):
        shutil.copy(segment, partition / name)
    what = "that a broker had marked as deleted or not finished"
    copied = answer(*command, partition, "--out", tmp_path / "out")  # What is marked as deleted is not copied.
    assert [line for line in copied.lines if what in line] == [
        f"  {verb} 1 file {what}: {cleaned}" for verb in ("removes", "removed")
    ]
    done = answer(*command, partition, "--in-place", "--yes")
    assert [line for line in done.lines if what in line] == [
        f"  {verb} 4 files {what}: {', '.join(deleted)} and 1 more" for verb in ("removes", "removed")
    ]
    assert [path for path in partition.iterdir() if path.suffix in (".cleaned", ".deleted")] == []
    assert what not in answer(*command, partition, "--in-place", "--yes").out


@pytest.mark.parametrize("how", ["copy", "in place"])
@pytest.mark.parametrize("damage", ["a bit", "the tail", "a codec"])
def test_compact_refuses_a_log_that_it_cannot_read_and_changes_nothing(
    partition: Path, tmp_path: Path, damage: str, how: str
) -> None:
    """Opening the log would recover it, and cut it before the damage: that is asked of `recover` only."""
    paths = sorted(partition.glob(f"*{LOG}"))
    path = paths[-1] if damage == "the tail" else paths[1]
    content = path.read_bytes()
    if damage == "the tail":
        path.write_bytes(content[:-1])
        what = "at byte 709, batch at offset 177: the last 196 bytes are not a whole batch"
    elif damage == "a bit":
        path.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
        what = "at byte 170, batch at offset 33: Record is corrupt (stored crc = 1, computed crc = 2)"
    else:
        path.write_bytes(content[:22] + bytes([content[22] | 7]) + content[23:])
        what = "at byte 0, batch at offset 30: Record is corrupt (stored crc = 1, computed crc = 2)"
    shutil.copytree(partition, partition.parent / "other-0")
    whole = partition.parent / "other-0" / path.name
    whole.write_bytes(content)
    before = contents(partition)
    place = ("--out", tmp_path / "out") if how == "copy" else ("--in-place", "--yes")
    found = answer("compact", partition, *place, *COMPACTED)
    said = re.sub(r"crc = \d+, computed crc = \d+", "crc = 1, computed crc = 2", found.err)
    rest = "; nothing is compacted, `brokerside log recover` cuts the log there\n"
    assert (found.status, found.out, said) == (EXIT_REFUSED, "", f"{path}: {what}{rest}")
    assert contents(partition) == before
    assert not (tmp_path / "out").exists()
    both = answer("compact", partition, whole.parent, *place, *COMPACTED)
    assert (both.status, both.err, contents(partition)) == (EXIT_REFUSED, found.err, before)
    assert "  cleaned up to offset 165" in both.lines


def test_an_interrupt_leaves_no_half_of_a_copy(
    partition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        assert any((tmp_path / "out" / DIRECTORY).iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr("log.tools.rework_plan.recover_partition", interrupted)
    assert answer("recover", partition, "--out", tmp_path / "out").status == EXIT_INTERRUPTED
    assert list((tmp_path / "out").iterdir()) == []


def test_two_directories_of_one_name_are_refused_before_anything_is_copied(partition: Path, tmp_path: Path) -> None:
    shutil.copytree(partition, tmp_path / "others" / DIRECTORY)
    found = answer("recover", partition, tmp_path / "others" / DIRECTORY, "--out", tmp_path / "out")
    assert (found.status, found.out, (tmp_path / "out").exists()) == (EXIT_USAGE, "", False)
    assert found.err == "brokerside log: topic-0: two directories have this name, and their copies would be one\n"


def test_only_the_topics_that_are_named_are_reworked(partition: Path, tmp_path: Path) -> None:
    shutil.copytree(partition, partition.parent / "other-0")
    assert answer("recover", partition.parent, "--topic", "other", "--out", tmp_path / "out").status == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["other-0"]


def test_a_directory_that_is_not_in_use_is_not_reworked(partition: Path, tmp_path: Path) -> None:
    deleted = partition.rename(partition.with_name(f"topic-0.{'0a' * 16}-delete"))
    found = answer("recover", deleted, "--out", tmp_path / "out")
    assert found.status == EXIT_USAGE
    assert found.err == f"brokerside log: {deleted} is not in use; rename it to topic-0, and it is taken as that\n"


@pytest.mark.deep
def test_a_full_disk_under_the_output_is_one_sentence(partition: Path) -> None:
    words = [sys.executable, "-m", "log", "dump", str(partition)]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert (ended.returncode, ended.stderr) == (EXIT_USAGE, "python -m log: No space left on device\n")


def log_directory(folder: Path) -> Path:
    write_sample("none", folder)
    return folder


def test_stats_that_cannot_estimate_a_compaction_have_status_1(tmp_path: Path) -> None:
    partition = log_directory(tmp_path) / DIRECTORY
    (partition / "00000000000000000000.txnindex").write_bytes(b"\x7f" * 34)  # Of a version that there is not.
    found = answer("stats", partition, "--total-only")
    assert found.err.startswith(f"what compaction would save in {partition}: ")
    assert found.status == EXIT_REFUSED
    assert answer("stats", partition, "--total-only", "--no-compaction").status == 0


def test_a_copy_never_goes_into_what_is_read_however_its_path_is_spelled(tmp_path: Path) -> None:
    partition = log_directory(tmp_path) / DIRECTORY
    before = contents(tmp_path)
    out = tmp_path / "elsewhere" / ".." / DIRECTORY / "out"
    found = answer("recover", partition, "--out", out)
    assert found.err == f"brokerside log: --out {out} lies in {partition}, which is only read\n"
    assert (found.status, contents(tmp_path)) == (EXIT_USAGE, before)


@pytest.mark.parametrize(("release", "entry_count"), [("3.8", 0), ("3.9", 2), ("4.3", 2)])
def test_a_log_is_compacted_as_by_the_release_that_is_named(tmp_path: Path, release: str, entry_count: int) -> None:
    # What the cleaner writes in one append gets an entry a batch from 3.9.1 on, before that one.
    partition = log_directory(tmp_path / "logs") / DIRECTORY
    settings = ("--config", "index.interval.bytes=0", "--config", "cleanup.policy=compact", "--now-ms", 5)
    out = tmp_path / "out"
    found = answer("compact", partition, "--out", out, "--include-active", "--kafka", release, *settings)
    assert found.status == 0
    assert (out / DIRECTORY / "00000000000000000000.index").stat().st_size == entry_count * 8


def test_a_release_that_is_not_known_is_refused(tmp_path: Path) -> None:
    found = answer("recover", log_directory(tmp_path) / DIRECTORY, "--out", tmp_path / "out", "--kafka", "9.9")
    assert (found.status, (tmp_path / "out").exists()) == (EXIT_USAGE, False)
    assert "9.9" in found.err


COUNT = 3


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write a log directory of three partitions that have equal files."""
    folder = tmp_path / "logs"
    write_sample("none", folder)
    for number in range(1, COUNT):
        shutil.copytree(folder / DIRECTORY, folder / f"topic-{number}")
    return folder


def test_each_partition_is_recovered_from_the_point_of_its_own_line(logs: Path) -> None:
    (logs / RECOVERY_POINT_FILE).write_text("0\n2\ntopic 0 180\ntopic 2 170\n")
    found = answer("recover", logs, "--in-place", "--yes", "--jobs", "1")
    said = [line.strip() for line in found.lines if "recovery point" in line]
    assert (found.status, said) == (
        0,
        [f"what is below the recovery point, {point}, was taken as it is" for point in (180, 170)],
    )


@pytest.mark.parametrize(
    ("content", "damage"),
    [
        ("0\n2\ntopic 0 180\n", "2 entries announced, 1 found"),
        ("9\n1\ntopic 0 180\n", "version 9; 0 is known"),
        ("\0" * 40, "malformed line '" + r"\x00" * 40 + "'"),
        ("0\n1\ntopic 0 1", None),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_a_warning_and_all_is_recovered(
    logs: Path, tmp_path: Path, content: str, damage: str | None
) -> None:
    (logs / RECOVERY_POINT_FILE).write_text(content)
    damaged(logs / DIRECTORY)
    found = answer("recover", logs, "--out", tmp_path / "out", "--jobs", "1")
    assert (found.status, [line.strip().endswith("bytes were cut") for line in found.lines].count(True)) == (0, 1)
    warned = f"warning: {logs}: {RECOVERY_POINT_FILE}: {damage}; every offset in it is taken as 0, as a broker does\n"
    assert found.err == ("" if damage is None else warned)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_the_first_sentence_of_each_command_s_help(name: str) -> None:
    command = log.get_command(click.Context(log), name)
    assert command is not None
    assert command.name == name
    assert summary_of(command) == COMMANDS[name][1]


@pytest.mark.deep
def test_help_imports_no_command_and_no_heavy_library() -> None:
    script = (
        "import sys\n"
        "from broker.cli import run\n"
        "from log.cli.main import COMMANDS, log\n"
        "run(log, 'log', ['--help'])\n"
        "heavy = {'numba', 'pyarrow', 'rich', 'log.tools', *(module for module, _ in COMMANDS.values())}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("[]", "")


def test_an_unknown_command_is_none() -> None:
    assert log.get_command(click.Context(log), "nothing") is None


def test_lines_are_written_in_blocks_and_long_ones_in_slices() -> None:
    lines = ["a", "b" * (2 * CHARACTERS_PER_WRITE + 1), "c\x1b", "d" * CHARACTERS_PER_WRITE, "e" * 9, "f"]
    for raw in (False, True):
        written: list[str] = []
        write_lines(written.append, lines, raw=raw)
        assert max(map(len, written)) <= 2 * CHARACTERS_PER_WRITE
        assert "".join(written) == "".join(f"{line if raw else printable(line)}\n" for line in lines)
