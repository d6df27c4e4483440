"""`brokerside log history`, and `dump` with --cluster-metadata-decoder: output and exit statuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InputError
from broker.units import DurationMs, TimeMs
from log.metadata import RecordType
from log.tools.sources import metadata_files
from log.tools.timestamps import duration_text, time_text
from tests.log.cli.test_commands import answer
from tests.log.metadata.made import REAL_LOG, START_MS, batches, broker, config, fenced, log_file, made, snapshot_file

SEGMENT = REAL_LOG / "00000000000000000000.log"
LAST_SNAPSHOT = REAL_LOG / "00000000000000000208-0000000001.checkpoint"
LAST_BATCH_AT = 19_860


def test_the_history_has_an_event_a_line_and_ends_with_the_sums() -> None:
    found = answer("history", REAL_LOG)
    assert (found.status, found.err) == (0, "")
    assert found.lines[0].endswith("offset 0 controller 100: controller elected: epoch 1")
    unclean = [line for line in found.lines if "unclean election:" in line]
    assert unclean[0] == (
        "2026-11-21T18:29:20.947Z offset 123 audit-1: unclean election: none → 3, epoch 2; "
        "in sync before: none, eligible: 3 (after 10 s 204 ms)"
    )
    assert "       4 unclean election" in found.lines


def test_the_history_for_programs_is_json_lines_with_the_summary_last() -> None:
    found = answer("history", "--json", "--topic", "audit", SEGMENT)
    rows = [json.loads(line) for line in found.lines]
    assert {row["topic"] for row in rows[:-1]} == {"audit"}
    assert rows[0]["what"] == "topic created"
    assert rows[-1]["type"] == "summary"
    assert rows[-1]["events"]["unclean election"] == 2
    assert answer("history", "--summary", "--json", "--topic", "audit", SEGMENT).lines == [found.lines[-1]]


def test_the_summary_of_named_topics_counts_only_theirs() -> None:
    def summary(*topics: str) -> dict[str, Any]:
        options = [text for topic in topics for text in ("--topic", topic)]
        (line,) = answer("history", "--summary", "--json", *options, SEGMENT).lines
        row: dict[str, Any] = json.loads(line)
        return row

    everything, clicks, both = summary(), summary("clicks"), summary("clicks", "audit")
    assert {each["topic"] for each in everything["partitions"]} > {"clicks", "audit"}
    assert {each["topic"] for each in clicks["partitions"]} == {"clicks"}
    assert clicks["partitions"] == [each for each in everything["partitions"] if each["topic"] == "clicks"]
    assert (clicks["events"]["topic created"], both["events"]["topic created"]) == (1, 2)
    kinds = [summary(topic)["events"].get("unclean election", 0) for topic in ("clicks", "audit")]
    assert sum(kinds) == both["events"]["unclean election"] == everything["events"]["unclean election"]
    assert "broker fenced" not in clicks["events"]
    assert (clicks["brokers"], bool(everything["brokers"])) == ([], True)


@pytest.mark.parametrize("options", [(), ("--keep-going",)])
@pytest.mark.parametrize(
    ("torn_count", "last"),
    [(52, "the last 52 bytes are not a whole batch and were"), (1, "the last byte is not a whole batch and was")],
)
def test_a_torn_end_of_the_log_is_a_line_of_standard_error_and_a_note_of_the_summary(
    tmp_path: Path, options: tuple[str, ...], torn_count: int, last: str
) -> None:
    torn = tmp_path / SEGMENT.name
    torn.write_bytes(SEGMENT.read_bytes()[: LAST_BATCH_AT + torn_count])
    note = f"{torn}: {last} left out: the file was copied while it was written, or is cut off"
    found = answer("history", *options, torn)
    assert (found.status, found.err) == (0, f"{note}\n")
    (line,) = answer("history", "--summary", "--json", *options, torn).lines
    assert json.loads(line)["notes"] == [note]
    (line,) = answer("history", "--summary", "--json", *options, SEGMENT).lines
    assert json.loads(line)["notes"] == []


@pytest.mark.parametrize("options", [(), ("--summary",), ("--json",)])
def test_a_topic_that_the_log_never_had_is_a_wrong_usage(options: tuple[str, ...]) -> None:
    found = answer("history", "--topic", "nope", *options, SEGMENT)
    assert found.status == 2
    assert "the log has no topic 'nope'; it has had audit, " in found.err
    assert found.lines == []


def test_a_log_directory_and_a_lone_snapshot_of_any_name_are_found(tmp_path: Path) -> None:
    assert len(metadata_files(REAL_LOG.parent).segments) == 1
    shutil.copy(LAST_SNAPSHOT, tmp_path / "prod")
    found = answer("history", tmp_path / "prod")
    assert (found.status, found.lines) == (0, ["0 ms, from 2026-11-21T18:30:25.262Z to 2026-11-21T18:30:25.262Z"])


def test_what_lasted_when_the_snapshot_was_taken_is_reported_to_have_lasted_at_least_since_then(tmp_path: Path) -> None:
    for file in (
        snapshot_file(3, broker(1, fenced=True), time_ms=START_MS - 5000),
        log_file((fenced(1, False),), start_offset=3),
    ):
        (tmp_path / file.name).write_bytes(bytes(file.data))
    found = answer("history", tmp_path)
    assert found.lines[0] == "2023-11-14T22:13:20.000Z offset 3 broker 1: broker unfenced (after 5 s at least)"
    row = json.loads(answer("history", "--json", tmp_path).lines[0])
    assert (row["duration_ms_min"], "duration_ms" in row) == (5000, False)


def test_damage_is_reported_or_passed_over_and_is_status_1(tmp_path: Path) -> None:
    name = tmp_path / "0.log"
    name.write_bytes(bytes(log_file((broker(1),), (fenced(2),), (fenced(1),)).data))
    what = f"{name}: offset 1: BROKER_REGISTRATION_CHANGE_RECORD: Tried to change broker 2, but that broker was not"
    stopped = answer("history", name)
    assert stopped.status == 1
    assert what in stopped.err
    went_on = answer("history", "--keep-going", name)
    assert went_on.status == 1
    assert what in went_on.err
    assert "broker 1: broker fenced" in went_on.out


def test_snapshots_are_verified_record_by_record(tmp_path: Path) -> None:
    whole = LAST_SNAPSHOT.read_bytes()
    path = tmp_path / LAST_SNAPSHOT.name
    path.write_bytes(whole)
    assert answer("verify", path).status == 0
    path.write_bytes(whole[:-10])
    torn = answer("verify", path)
    assert torn.status == 1
    assert "a snapshot without SNAPSHOT_FOOTER; it was not written to its end" in torn.out
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert "Record is corrupt" in answer("verify", path).out


def test_what_is_no_metadata_log_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Topic: a\n" * 20, encoding="utf-8")
    for path, what in (
        (tmp_path / "a.txt", "is no segment and no snapshot of a metadata log"),
        (tmp_path, "holds no segment and no snapshot of a metadata log"),
        (tmp_path / "none", "cannot be read: no such file or directory"),
    ):
        with pytest.raises(InputError) as refusal:
            metadata_files(path)
        assert str(refusal.value) == f"{path}: {what}"
        assert answer("history", path).status == 2


def test_the_dump_decodes_records_and_names_snapshots() -> None:
    found = answer("dump", "--cluster-metadata-decoder", "--skip-record-metadata", SEGMENT)
    data = '{"name":"metadata.version","featureLevel":25}'
    line = f'payload: {{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{data}}}'
    assert f"| {line}" in found.lines
    snapshot = answer("dump", "--cluster-metadata-decoder", LAST_SNAPSHOT)
    assert snapshot.lines[1] == "Snapshot end offset: 208, epoch: 1"
    assert snapshot.lines[3].endswith('SnapshotHeader {"version":0,"lastContainedLogTimestamp":1795285825262}')


def test_the_dump_for_programs_has_records_and_control_records_as_objects() -> None:
    rows = [json.loads(line) for line in answer("dump", "--json", "--cluster-metadata-decoder", SEGMENT).lines]
    leader = next(row for row in rows if row.get("controlType") == "LEADER_CHANGE")
    assert leader["data"]["leaderId"] == 100
    payload = next(row["payload"] for row in rows if "payload" in row and row["payload"]["type"] == "TOPIC_RECORD")
    assert payload["data"]["name"] == "orders"


def test_durations_and_times_are_reported_in_units() -> None:
    texts = {0: "0 ms", 999: "999 ms", 60_000: "1 min", 61_500: "1 min 1 s", 90_000_000: "1 d 1 h", 3_600_001: "1 h"}
    assert {number: duration_text(DurationMs(number)) for number in texts} == texts
    assert time_text(TimeMs(0)) == "1970-01-01T00:00:00.000Z"


def test_dump_hides_secrets_as_history_does_unless_asked(tmp_path: Path) -> None:
    jaas = "listener.name.sasl.plain.sasl.jaas.config"
    settings = {jaas: "s1", "ssl.key.password": "s2", "ssl.keystore.key": "s3", "ssl.truststore.location": "plain"}
    scram = made(
        RecordType.USER_SCRAM_CREDENTIAL_RECORD,
        name="alice",
        mechanism=1,
        salt=b"salt",
        storedKey=b"stored",
        serverKey=b"server",
        iterations=4096,
    )
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batches([*(config(*each) for each in settings.items()), config(jaas, None), scram]))
    for how in ((), ("--json",)):
        found = answer("dump", path, "--cluster-metadata-decoder", *how)
        assert (found.status, found.out.count("(hidden)")) == (0, 6)
        assert [secret for secret in ("s1", "s2", "s3", "c2Fsd", "c3Rvc", "c2Vyd") if f'"{secret}' in found.out] == []
        assert "plain" in found.out
        asked = answer("dump", path, "--cluster-metadata-decoder", "--show-secrets", *how).out
        assert "(hidden)" not in asked
        assert [secret for secret in ("s1", "s2", "s3", "c2Fsd", "c3Rvc", "c2Vyd") if f'"{secret}' not in asked] == []
