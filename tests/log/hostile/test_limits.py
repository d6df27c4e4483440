"""No command takes more than 500 MB, or 20 seconds a megabyte, for what a stranger hands over.

Each input is written to a folder, and each command runs on it in a process of its own. Each input meets one
command by turns; with `--hypothesis-profile=deep` every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from broker.units import MIB
from log.segments.file_names import LOG, OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from tests.log.hostile import inputs
from tests.support.cost import run_measured

pytestmark = pytest.mark.deep

MB: Final = 1_000_000
MEMORY_BYTES_MAX: Final = 500 * MB
SECONDS_PER_MB: Final = 20
STATUSES: Final = (0, 1, 2)
SEGMENT: Final = file_name(0, LOG)
COMMANDS: Final = (
    "dump",
    "dump --deep-iteration",
    "dump --print-data-log",
    "dump --print-data-log --json",
    "dump --keep-going --quiet --out OUT",
    "verify --keep-going",
    "stats",
    "transactions",
    "compact --include-active --quiet --out OUT",
    "recover --quiet --out OUT",
)
SPARK: Final = """
import sys
from log.tools.sources import named_file
from spark_analysis.data_sources.log_listing import log_segments
from spark_analysis.data_sources.log_rows import LogRequest, segment_batches
from spark_analysis.tables.schemas import LOG_BATCHES, LOG_RECORDS
for table in (LOG_RECORDS, LOG_BATCHES):
    request = LogRequest(table, table.column_names, "PERMISSIVE")
    print(sum(len(rows) for rows in segment_batches(request, log_segments([sys.argv[1]]))))
"""


def by_turns(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of an input and a command: one for each input, or all with the deep profile of Hypothesis."""
    every = settings().max_examples >= 2_000
    return [
        (name, words)
        for place, name in enumerate(names)
        for turn, words in enumerate(COMMANDS)
        if every or (turn - 3 * place) % len(COMMANDS) == 0
    ]


def check(arguments: Sequence[str], size_bytes: int) -> None:
    """Run Python with these arguments within the limits."""
    cost = run_measured(arguments, NUMBA_NUM_THREADS="1")
    assert cost.status in STATUSES, (cost.status, cost.said[-500:])
    assert "Traceback" not in cost.said, cost.said[-2000:]
    assert cost.memory_bytes <= MEMORY_BYTES_MAX, f"{cost.memory_bytes // MB} MB"
    seconds_max = SECONDS_PER_MB * max(1, size_bytes / MB)
    assert cost.cpu_seconds <= seconds_max, f"{cost.cpu_seconds:.1f} s for {size_bytes} bytes"


def command(words: str, path: Path, out: Path) -> list[str]:
    """The arguments of Python for a command of `brokerside log`; what it writes goes to a folder of its own."""
    return ["-m", "spark_analysis", "log", *words.replace("OUT", str(out)).split(), str(path)]


def folder_of(parent: Path, name: str, files: dict[str, bytes]) -> Path:
    folder = parent / name
    folder.mkdir(parents=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The segments of all inputs, each in the directory of a partition."""
    parent = tmp_path_factory.mktemp("hostile")
    for name, make in inputs.SEGMENTS.items():
        folder_of(parent, f"{name}-0", {SEGMENT: make()})
    return parent


@pytest.mark.parametrize(("name", "words"), by_turns(inputs.SEGMENTS))
def test_a_segment_costs_every_command_what_its_bytes_may_cost(
    segments: Path, name: str, words: str, tmp_path: Path
) -> None:
    folder = segments / f"{name}-0"
    check(command(words, folder, tmp_path / "out"), (folder / SEGMENT).stat().st_size)


@pytest.mark.parametrize("name", inputs.SEGMENTS)
def test_a_segment_costs_the_reader_of_spark_what_its_bytes_may_cost(segments: Path, name: str) -> None:
    folder = segments / f"{name}-0"
    check(["-c", SPARK, str(folder)], (folder / SEGMENT).stat().st_size)


@pytest.mark.parametrize("options", ["--print-data-log", "DECODER", "DECODER --json"])
@pytest.mark.parametrize("topic", inputs.TOPICS)
def test_a_record_of_an_internal_topic_costs_what_its_bytes_may_cost(topic: str, options: str, tmp_path: Path) -> None:
    decoder, make = inputs.TOPICS[topic]
    one = make()
    folder = folder_of(tmp_path, topic, {SEGMENT: inputs.repeated(one)})
    check(command(f"dump {options.replace('DECODER', decoder)}", folder, tmp_path), MB)
    check(command("history --keep-going" if "metadata" in topic else "transactions", folder, tmp_path), MB)


def times(entry: Callable[[int], int]) -> bytes:
    """A time index of half a megabyte of these entries."""
    return b"".join(entry(number).to_bytes(12, "big") for number in range(MIB // 24))


LIKE_A_SEGMENT: Final = inputs.repeated(inputs.many_records(inputs.Codec.ZSTD), MIB // 2)
FILES: Final = {
    "time index": {
        SEGMENT: LIKE_A_SEGMENT,
        file_name(0, TIME_INDEX): b"".join(n.to_bytes(12, "big") for n in range(MIB // 24)),
    },
    "tiny batches": {
        SEGMENT: inputs.repeated(inputs.batch(b"", 0), MIB // 2),
        file_name(0, TIME_INDEX): b"".join(
            bytes(7) + b"\1" + (8000 - n % 8000).to_bytes(4, "big") for n in range(MIB // 24)
        ),
    },
    "offset index": {SEGMENT: LIKE_A_SEGMENT, file_name(0, OFFSET_INDEX): bytes(range(256)) * (MIB // 512)},
    "producers": {SEGMENT: b"", file_name(1, PRODUCER_SNAPSHOT): inputs.snapshot(MIB)},
    "transactions": {SEGMENT: b"", file_name(0, TXN_INDEX): bytes(34) * (MIB // 34)},
    "epochs": {SEGMENT: b"", "leader-epoch-checkpoint": b"0\n99999999\n" + b"1 1\n" * (MIB // 4)},
    "count": {SEGMENT: b"", file_name(1, PRODUCER_SNAPSHOT): b"\0\1" + bytes(4) + b"\x7f\xff\xff\xff" + bytes(MIB)},
}


@pytest.mark.parametrize(("name", "words"), by_turns(FILES))
def test_files_beside_a_segment_cost_what_their_bytes_may_cost(name: str, words: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "orders-0", FILES[name])
    check(command(words, folder, tmp_path / "out"), sum(map(len, FILES[name].values())))
