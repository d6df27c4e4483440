"""Files of under 1 MB that somebody made to hurt: each command answers or says one sentence, within memory and time."""

from __future__ import annotations

import bz2
import gzip
import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from broker.cli import EXIT_FAILED, EXIT_REFUSED
from tests.architecture.house import ROOT
from tests.support.cost import run_measured

MEMORY_BYTES_MAX: Final = 1 << 30
GROUP_MEMORY_BYTES_MAX: Final = 500_000_000
START_SECONDS: Final = 20  # Interpreter, imports, kernels of an empty cache: what a file of one row takes, with room.
SECONDS_PER_MB: Final = 20
GOOD: Final = (
    "Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
)
SURROGATES: Final = {"topic": "\ud800" * 9, "partitions": [{}]}
MEMBER: Final = b'"member_id":"m","topics":["a"]'
ROW: Final = b"Topic: a Partition: 0 Leader: 1 Replicas: 1 Isr: 1\n"


def _wide(rows: int, width: int, step: int = 0) -> bytes:
    lines = [f"Topic: t\tPartitionCount: {rows}\tReplicationFactor: {width}\tConfigs: min.insync.replicas=2"]
    for row in range(rows):
        ids = ",".join(map(str, range(row * step, row * step + width)))
        lines.append(f"\tTopic: t\tPartition: {row}\tLeader: {row * step}\tReplicas: {ids}\tIsr: {ids}")
    return ("\n".join(lines) + "\n").encode()


def _many_topics(count: int) -> bytes:
    return b"".join(b"Topic: t%d\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n" % each for each in range(count))


def _group(topic: bytes, members: bytes) -> bytes:
    return b'{"topics":[{%b}],"members":[{%b}]}' % (topic, members)


def _bomb(piece: bytes, size_bytes: int, before: bytes = b'{"partitions":[', after: bytes = b"{}]}") -> bytes:
    return before + piece * (size_bytes // len(piece)) + after


MAKERS: Final[dict[str, Callable[[], bytes]]] = {
    "one row of 8,000": lambda: _wide(1, 8_000),
    "two rows of 30,000": lambda: _wide(2, 30_000, 1)[:999_000],
    "ids twice": lambda: _wide(1, 30_000).replace(b"0,1,2,3,", b"0,1,2,29999,"),
    "objects in gzip": lambda: gzip.compress(_bomb(b"{},", 250 << 20)),
    "objects in gzip below the limit of size": lambda: gzip.compress(_bomb(b"{},", 60 << 20)),
    "lists in bzip2": lambda: bz2.compress(_bomb(b"[],", 60 << 20)),
    "rows in zstandard": lambda: bytes(pa.compress(ROW * 8_000_000, "zstd", asbytes=True)),
    "rejects in gzip": lambda: gzip.compress(b"Topic: a Partition: x Leader: 1\n" * 1_900_000),
    "nested lists": lambda: b'{"a":' + b"[" * 900_000,
    "nested objects": lambda: b'{"a":' * 180_000,
    "braces in text": lambda: b'x {"a": 1 ' * 90_000,
    "braces that open": lambda: b"x {\"\n" * 150_000,
    "digits": lambda: b'{"version":1,"partitions":[{"topic":"a","partition":' + b"9" * 900_000 + b',"replicas":[1]}]}',
    "exponents": lambda: b'{"brokers":[' + b'{"Broker":1e999,"Replicas":1e308,"Leaders":-1},' * 18_000 + b"{}]}",
    "topics": lambda: _many_topics(18_000),
    "NULs": lambda: b"\x00" * 999_000,
    "NULs in rows": lambda: GOOD.replace("\t", "\x00").encode() * 6_000,
    "surrogates": lambda: json.dumps({"brokers": [], "topics": [SURROGATES] * 9_000}).encode(),
    "blanks": lambda: b"Topic:" + b" \t" * 450_000 + b"a",
    "commas": lambda: b"Topic: a\tPartition: 0\tLeader: 1\tReplicas: " + b"1, " * 300_000,
    "escapes": lambda: b"Topic: a\\tPartition: 0\\n" * 40_000,
    "sequences": lambda: b"\x1b]0;" * 240_000,
    "prefixes": lambda: b"".join(b"%d-%d| Topic: a Partition: 0\n" % (each, each) for each in range(28_000)),
    "wrapped": lambda: b"Topic: a\n" + b"x,\n" * 300_000,
}  # fmt: skip
GROUP_MAKERS: Final[dict[str, Callable[[], bytes]]] = {
    "nested objects": MAKERS["nested objects"],
    "digits": MAKERS["digits"],
    "partitions of a group": lambda: _group(b'"topic":"a","partitions":1000000000', MEMBER),
    "topics of a group": lambda: _group(b'"topic":"a","partitions":10000000', MEMBER),
    "many partitions of a group": lambda: _group(b'"topic":"a","partitions":100000', MEMBER),
    "members of a group": lambda: _group(b'"topic":"a","partitions":4', b"},{" * 300_000),
    "member ids": lambda: _group(b'"topic":"a","partitions":4', MEMBER.replace(b'"m"', b'"%b"' % (b"m" * 990_000))),
    "not a number": lambda: _group(b'"topic":"a","partitions":NaN', MEMBER),
    "keys twice": lambda: _group(b'"topic":"a",' * 80_000 + b'"partitions":1', MEMBER),
    "brackets": lambda: b"[" * 999_000,
}  # fmt: skip
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "report": ("report", "FILE", "--engine", "local", "--quiet", "--out", "OUT"),
    "report --sizes": ("report", "good.txt", "--sizes", "FILE", "--engine", "local", "--quiet", "--out", "OUT"),
    "plan": ("plan", "FILE", "--goal", "balance", "--out", "OUT"),
    "outage": ("outage", "FILE", "--lose", "1"),
    "roll": ("roll", "FILE"),
    "impact": ("impact", "good.txt", "FILE"),
}
GROUP_COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "groups assign": ("groups", "assign", "FILE"),
    "groups simulate": ("groups", "simulate", "--events", "FILE"),
}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "command"), [*product(MAKERS, COMMANDS), *product(GROUP_MAKERS, GROUP_COMMANDS)], ids=str
)
def test_a_hostile_file_costs_little_and_ends_in_one_sentence(kind: str, command: str, tmp_path: Path) -> None:
    data = (MAKERS | GROUP_MAKERS)[kind]()
    assert len(data) < 1_000_000, "a file of under 1 MB"
    (tmp_path / "hostile").write_bytes(data)
    (tmp_path / "good.txt").write_text(GOOD)
    words = [word.replace("FILE", "hostile").replace("OUT", "out") for word in (COMMANDS | GROUP_COMMANDS)[command]]
    seconds = START_SECONDS + SECONDS_PER_MB * max(1, len(data) / 1e6)
    cost = run_measured(["-m", "spark_analysis", *words], with_output=True, folder=tmp_path, PYTHONPATH=str(ROOT))
    text = cost.said
    assert "Traceback" not in text
    assert cost.status in (0, EXIT_REFUSED, 2), (cost.status, text[-500:])
    assert cost.status != EXIT_FAILED
    memory_bytes_max = GROUP_MEMORY_BYTES_MAX if command in GROUP_COMMANDS else MEMORY_BYTES_MAX
    assert cost.memory_bytes < memory_bytes_max, f"{cost.memory_bytes >> 20} MiB"
    assert cost.cpu_seconds < seconds, f"{cost.cpu_seconds:.0f} s"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text), "nothing of it reaches the terminal raw"
