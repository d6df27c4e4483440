"""Files as people paste them, through the commands: read as they were printed, or refused by the name of their tool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from broker.cli import run
from broker.errors import InputError
from placement.formats.read import read_dump
from spark_analysis.cli.commands import brokerside

REPORTED: Final = Path(__file__).parents[2] / "real_data" / "reported"
BASELINE: Final = (REPORTED / "pasted" / "crlf.txt").read_text().replace("\r\n", "\n")
PLAN: Final = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,1],"log_dirs":["any","any"]}]}'
Capture = pytest.CaptureFixture[str]


def reported(capsys: Capture, path: Path, *more: str, out: Path) -> dict[str, Any]:
    """Return report.json of a report on one file."""
    words = ["report", str(path), *more, "--json", "--quiet", "--engine", "local", "--out", str(out)]
    status = run(brokerside, "brokerside", words)
    text = capsys.readouterr()
    assert status == 0, text.err
    found: dict[str, Any] = json.loads(text.out)
    return found


def counts(found: dict[str, Any]) -> tuple[int, int, int, int]:
    return found["rows_analysed"], found["rows_rejected"], found["lines_passed_over"], found["partition_count"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-kcat-L.txt", (8, 0, 0, 5)),
        ("07-strimzi-4694.txt", (2, 0, 0, 1)),
        ("09-annotated.txt", (2, 2, 1, 1)),  # Two rows have notes behind their ISR: nothing is guessed of them.
        ("10-msk-partitions.json", (3, 0, 0, 3)),
        ("11-zk-topic.json", (3, 0, 0, 3)),
        ("20-first.txt", (4, 0, 1, 3)),
        ("20-generate.txt", (6, 0, 0, 6)),
        ("26-kafkatools-log.txt", (2, 0, 4, 2)),
        ("32-noise-plan.txt", (6, 0, 1, 6)),
        ("52-rpk.txt", (2, 0, 0, 2)),
        ("57-zkcli.txt", (3, 0, 4, 3)),
        ("58-joined.txt", (4, 0, 0, 3)),
        ("58-wrapped-healthy.txt", (4, 0, 0, 3)),
    ],
)
def test_a_file_is_read_with_every_line_counted(
    name: str, expected: tuple[int, ...], tmp_path: Path, capsys: Capture
) -> None:
    found = reported(capsys, REPORTED / name, out=tmp_path)
    assert counts(found) == expected
    assert len(found["rejects"]) == found["rows_rejected"]
    assert all(reject["line"] for reject in found["rejects"])
    page = (tmp_path / "report.html").read_text()
    assert ("passed over; the first: line " in page) == bool(found["lines_passed_over"])


def _each_line(before: str, after: str = "") -> str:
    lines = enumerate(BASELINE.splitlines(), start=1)
    return "".join(f"{before.replace('9', str(number))}{line}{after}\n" for number, line in lines)


WAYS: Final = {
    "docker compose": _each_line("kafka-1  | "),
    "kubectl logs --prefix": _each_line("[pod/kafka-0/kafka] "),
    "kubectl logs --timestamps --prefix": _each_line("[pod/kafka-0/kafka] 2026-11-28T10:00:00.9Z "),
    "containerd": _each_line("2026-11-28T10:00:00.9+00:00 stdout F "),
    "syslog": _each_line("Nov 28 10:00:09 host kafka[9]: "),
    "log4j": _each_line("[2026-11-28 10:00:00,9] INFO "),
    "grep -Hn": _each_line("dump.txt:9:"),
    "cat -n": _each_line("     9\t"),
    "cat -A": _each_line("", "$").replace("\t", "^I"),
    "quoted in a mail": _each_line(">> "),
    "a list of Ansible": "".join(f'    "{line}",\n' for line in BASELINE.replace("\t", "\\t").splitlines()),
    "a table of a wiki": _each_line("| ", " |"),
    "colours within rows": BASELINE.replace("Leader:", "\x1b[1;31mLeader\x1b[0m:").replace("Topic:", "\x1b[KTopic:"),
    "tabs lost": BASELINE.replace("\t", ""),
    "tabs as one blank": BASELINE.replace("\t", " "),
    "wide blanks": BASELINE.replace("\t", "\u3000\u200b"),
    "upper case": re.sub("(Topic|Partition|Leader|Replicas|Isr):", lambda name: name[0].upper(), BASELINE),
    "JSON log lines before": '{"level":"warn","msg":"slow"}\n' + BASELINE,
    "a log line with JSON before": 'INFO config {"a": 1}\n' + BASELINE,
}


PASTED: Final = {path.stem: path.read_bytes() for path in sorted((REPORTED / "pasted").iterdir())}
"""One describe, as terminals, chats and collectors gave it on."""


@pytest.mark.parametrize("way", [*PASTED, *WAYS])
def test_a_pasted_describe_is_what_was_printed(way: str) -> None:
    dump = read_dump([PASTED.get(way) or WAYS[way].encode()], source="pasted")
    (view,), (printed,) = dump.clusters, read_dump([BASELINE.encode()], source="pasted").clusters
    assert (dump.rows_analysed, dump.rejects) == (10, ())
    for name in ("replicas", "isr", "leader", "partition_ids"):
        assert getattr(view.partitions, name).tolist() == getattr(printed.partitions, name).tolist()
    assert view.topics == printed.topics
    if way in PASTED:
        assert dump.lines_passed_over == {"fence": 2, "noise": 5, "yaml": 1}.get(way, 0)


@pytest.mark.parametrize("width", range(20, 131, 11))
def test_a_terminal_of_any_width_wraps_rows_that_are_joined_again(width: int) -> None:
    """Words are not kept whole: a number may stand on two lines."""
    lines = BASELINE.expandtabs(8).splitlines()
    wrapped = "\n".join(line[start : start + width] for line in lines for start in range(0, len(line), width))
    dump = read_dump([wrapped.encode()], source="pasted")
    printed = read_dump([BASELINE.encode()], source="pasted")
    assert dump.rejects == ()
    assert dump.clusters[0].partitions.replicas.tolist() == printed.clusters[0].partitions.replicas.tolist()
    assert dump.clusters[0].topics == printed.clusters[0].topics


def test_a_prefix_of_few_rows_is_a_reject_with_its_line() -> None:
    lines = BASELINE.splitlines()
    lines[3] = "- " + lines[3]
    dump = read_dump(["\n".join(lines).encode()], source="diff")
    assert [(reject.line, reject.reason) for reject in dump.rejects] == [(4, "unexpected text '-'")]
    assert dump.rows_analysed == 9
    several = "".join(f"{'abc'[number % 3]} {line}\n" for number, line in enumerate(BASELINE.splitlines()))
    with pytest.raises(InputError, match="nothing can be used: unexpected text 'a'"):
        read_dump([several.encode()], source="of several hosts")


NOISE: Final = {
    "log lines": f"[2026-11-28 10:00:00,1] WARN [AdminClient clientId=x] slow {{not JSON}}\n{PLAN}\n",
    "a fence": f"```json\n{PLAN}\n```\n",
    "text behind": f"{PLAN} # as of today\nbye\n",
    "on a log line": f"[INFO] Executing partition reassignment 1/1: {PLAN}\n",
    "indented, with a prefix": "".join(
        f"kafka-1  | {line}\n" for line in json.dumps(json.loads(PLAN), indent=2).splitlines()
    ),
    "with timestamps": "".join(
        f"2026-11-28T10:00:00.{number}Z {line}\n"
        for number, line in enumerate(json.dumps(json.loads(PLAN), indent=1).splitlines())
    ),
    "quoted": json.dumps(PLAN),
    "typographic quotes": PLAN.replace('"', "\u201c"),
    "colours": f"\x1b[32m{PLAN}\x1b[0m\n",
    "a list": f"[{PLAN}]",
    "a JSON log line before": f'{{"level":"warn","msg":"x"}}\n{PLAN}\n',
    "a log line with JSON": f'INFO config {{"a": 1}}\n{PLAN}\n',
}


@pytest.mark.parametrize("kind", NOISE)
def test_a_plan_is_found_in_other_text(kind: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "now.txt").write_text(
        "Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    )
    (tmp_path / "plan").write_text(NOISE[kind])
    words = ["impact", str(tmp_path / "now.txt"), str(tmp_path / "plan"), "--add", "3", "--json"]
    status = run(brokerside, "brokerside", words)
    text = capsys.readouterr()
    assert status == 0, text.err
    assert json.loads(text.out)["moved_replica_count"] == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "10-redpanda-console.json",
            "this is Redpanda Console's answer about a topic; give what kafka-topics --describe",
        ),
        ("28-cc-state.txt", "this is what Cruise Control prints, as plain text; add json=true"),
        ("53-kafkactl.json", "this is what kafkactl prints about a topic; give what kafka-topics --describe prints"),
        ("56-topicctl.txt", "this is what topicctl prints, as a table; give what kafka-topics --describe prints"),
    ],
)
@pytest.mark.parametrize("command", [("report",), ("plan", "--goal", "balance"), ("roll",)], ids=lambda words: words[0])
def test_other_tools_are_named_with_the_command_whose_output_is_read(
    command: tuple[str, ...], name: str, says: str, capsys: Capture
) -> None:
    assert run(brokerside, "brokerside", [command[0], str(REPORTED / name), *command[1:]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_cluster_of_more_brokers_than_any_is_refused(tmp_path: Path, capsys: Capture) -> None:
    def row(count: int) -> str:
        ids = ",".join(map(str, range(count)))
        return f"Topic: t\tPartition: 0\tLeader: 0\tReplicas: {ids}\tIsr: {ids}\n"

    assert len(read_dump([row(10_000).encode()], source="wide").clusters[0].brokers) == 10_000
    (tmp_path / "wide").write_text(row(10_001))
    assert run(brokerside, "brokerside", ["outage", str(tmp_path / "wide"), "--lose", "1", "--partial"]) == 2
    refused = f"{tmp_path / 'wide'}: the rows name 10,001 brokers; clusters of at most 10,000 are read\n"
    assert capsys.readouterr().err.endswith(refused)


def test_sizes_are_found_behind_log_lines(tmp_path: Path, capsys: Capture) -> None:
    dump = Path(__file__).parents[2] / "real_data" / "kraft" / "describe"
    path = next(iter(sorted(dump.glob("*.txt"))))
    found = reported(capsys, path, "--sizes", str(REPORTED / "36-logdirs-noise.txt"), out=tmp_path)
    assert found["lines_passed_over"] == 3
    assert "Querying brokers" not in json.dumps(found["rejects"])


def test_a_wrapped_describe_gets_the_schedule_of_the_joined_one(capsys: Capture) -> None:
    found = []
    for name in ("58-wrapped-healthy.txt", "58-joined.txt"):
        status = run(brokerside, "brokerside", ["roll", str(REPORTED / name), "--json"])
        answer = json.loads(capsys.readouterr().out)
        found.append((status, answer["batches"]))
    assert found[0] == found[1] == (0, [[0], [1], [2]])
