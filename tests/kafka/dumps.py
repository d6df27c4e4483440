"""Random files of logs, whole and damaged, dumped by kafka-dump-log and by ours with random options.

What it decides: whether both print the same lines to standard output, and the same problems to standard error; where
Kafka's tool ends with an exception, ours must tell damage after the same lines.

How
A case takes one of the samples of tests.log.samples, or batches of any magic. It damages some of its files (a flipped
bit, a cut, a changed byte, zeros behind the end as a killed broker leaves them, halves in the other order) and dumps
one or several files of one kind. Samples are written once for each process.

Left out: the words of exceptions, which Kafka's tool prints with a stack trace; a file that ends a dump is the only
one of its case's damaged files, as Kafka's tool dumps nothing after it; a message inside a wrapper of magic 0 or 1
whose value runs past it, which Kafka's tool overlooks as long as it prints no data.

Source: ours.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from broker.errors import CorruptDataError, InputError
from log.segments.file_names import LOG
from log.storage import FileStorage
from log.tools.dump_options import DumpOptions
from log.tools.dump_text import file_lines
from log.tools.findings import Problems
from log.tools.sources import SourceFile
from tests.golden.log.states import batch_bytes
from tests.kafka import batches
from tests.kafka.areas import Area, fewer
from tests.kafka.jvm import Dumped, KafkaJvm
from tests.log.samples import DIRECTORY, SAMPLES, write_sample

SETS: Final[Mapping[str, tuple[str, ...]]] = {
    ".log": ("deep", "print_data", "skip_record_metadata", "bytes_max"),
    ".index": ("index_sanity_check", "verify_index_only", "message_size_max"),
    ".timeindex": ("index_sanity_check", "verify_index_only"),
    ".txnindex": (),
    ".snapshot": (),
}
"""The options of each kind of file that change what is printed."""

ARGUMENTS: Final[Mapping[str, str]] = {
    "deep": "--deep-iteration",
    "print_data": "--print-data-log",
    "skip_record_metadata": "--skip-record-metadata",
    "index_sanity_check": "--index-sanity-check",
    "verify_index_only": "--verify-index-only",
    "bytes_max": "--max-bytes",
    "message_size_max": "--max-message-size",
}
NUMBERS: Final = {"bytes_max": (1, 60, 500, 1400), "message_size_max": (1, 20, 79, 100, 300)}
OVERLOOKED: Final = "the value runs past the message"
MADE: Final = "batches"
"""What names a segment of random batches, with the seed and number of their case in the area of batches."""

ENDINGS: Final = (".log", ".log", ".index", ".timeindex", ".timeindex", ".txnindex", ".snapshot")
DAMAGE: Final = ("flip", "flip", "flip", "set", "cut", "zeros", "swap")


@attrs.frozen
class DumpCase:
    """A sample, what is done to its files (kind, file, share of the way, number), and what is dumped how."""

    sample: str
    ending: str
    files: tuple[int, ...]
    options: Mapping[str, Any]
    damage: tuple[tuple[str, str, float, int], ...] = ()


def area(kafka: KafkaJvm) -> Area[DumpCase]:
    """Return the area of dumps."""
    samples = Path(tempfile.mkdtemp(prefix="dumps-"))
    return Area(name="dumps", draw=draw, difference=lambda case: difference(kafka, samples, case), smaller=smaller)


def draw(seed: int, number: int) -> DumpCase:
    """Return case `number` of a seed."""
    chance = random.Random(f"dumps/{seed}/{number}")
    ending = chance.choice(ENDINGS)
    options: dict[str, Any] = {}
    for name in SETS[ending]:
        if chance.random() < 0.4:
            options[name] = chance.choice(NUMBERS[name]) if name in NUMBERS else True
    count = chance.choice((1, 1, 2, 30))
    files = tuple(range(30)) if count == 30 else tuple(chance.sample(range(8), count))
    damage = []
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        damaged = chance.choice((ending, ending, ".log", ".index")) if "index" in ending else ending
        damage.append((chance.choice(DAMAGE), damaged, chance.random(), chance.randrange(256)))
    sample = chance.choice(sorted(SAMPLES))
    if ending == LOG and chance.random() < 0.4:
        sample = f"{MADE}/{seed}/{number}"
    return DumpCase(sample, ending, files, options, tuple(damage))


def difference(kafka: KafkaJvm, samples: Path, case: DumpCase) -> str | None:
    """Return the first line in which both dumps of a case differ."""
    folder = Path(tempfile.mkdtemp(prefix="dump-"))
    try:
        _write(case.sample, samples, folder)
        paths = _damaged(folder / DIRECTORY, case)
        if not paths:
            return None
        deep = bool(case.options.get("deep") or case.options.get("print_data"))
        ours = dumped(paths, DumpOptions(**{**case.options, "deep": deep}))
        theirs = kafka.dump(paths, *arguments(case.options))
        return unlike(ours, theirs)
    finally:
        shutil.rmtree(folder)


def dumped(paths: Sequence[Path], options: DumpOptions) -> Dumped:
    """Return what we print of files, up to the first damage that ends a dump."""
    problems, lines, thrown = Problems(), list[str](), None
    for path in paths:
        file = SourceFile(FileStorage(path.parent, read_only=True), path.name, str(path))
        try:
            for line in file_lines(file, options, problems):
                lines.append(line)
        except (CorruptDataError, InputError) as error:
            thrown = str(error)
            break
    return Dumped("".join(f"{line}\n" for line in lines), "".join(f"{line}\n" for line in problems.lines()), thrown)


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the options as kafka-dump-log takes them."""
    given = []
    for name, value in options.items():
        given += [ARGUMENTS[name]] if value is True else [ARGUMENTS[name], str(value)]
    return given


def unlike(ours: Dumped, theirs: Dumped) -> str | None:
    """Return in what two dumps differ; problems are compared where no exception came before them."""
    if theirs.thrown is None and OVERLOOKED in (ours.thrown or ""):
        return None
    if (ours.thrown is None) != (theirs.thrown is None):
        return f"ours ends with {ours.thrown!r}, Kafka with {theirs.thrown!r}: {theirs.message}"
    # An exception comes in the middle of a line of Kafka's.
    their_out = theirs.out if theirs.thrown is None else theirs.out[: theirs.out.rfind("\n") + 1]
    pairs = [("out", ours.out, their_out)]
    if theirs.thrown is None:
        pairs.append(("err", ours.err, theirs.err))
    for name, our_text, their_text in pairs:
        if our_text != their_text:
            return f"{name}: {_first(our_text.splitlines(), their_text.splitlines())}"
    return None


def smaller(case: DumpCase) -> Iterator[DumpCase]:
    """Yield cases with less damage, fewer files or fewer options."""
    for damage in fewer(case.damage):
        yield attrs.evolve(case, damage=tuple(damage))
    for files in fewer(case.files):
        if files:
            yield attrs.evolve(case, files=tuple(files))
    for name in case.options:
        yield attrs.evolve(case, options={key: value for key, value in case.options.items() if key != name})


def _first(ours: Sequence[str], theirs: Sequence[str]) -> str:
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our != their:
            return f"line {number}:\n  ours  {our}\n  Kafka {their}"
    return f"ours has {len(ours)} lines, Kafka {len(theirs)}: {[*ours, *theirs][min(len(ours), len(theirs)) :][:1]}"


def _write(name: str, samples: Path, folder: Path) -> None:
    """Write a sample's files below a folder."""
    if name.startswith(MADE):
        _made, seed, number = name.split("/")
        made = batches.draw(int(seed), int(number)).batches
        (folder / DIRECTORY).mkdir()
        path = folder / DIRECTORY / f"{made[0]['baseOffset']:020}{LOG}"
        path.write_bytes(b"".join(map(batch_bytes, made)))
        return
    if not (samples / name).exists():
        write_sample(name, samples / name)
    shutil.copytree(samples / name / DIRECTORY, folder / DIRECTORY)


def _damaged(folder: Path, case: DumpCase) -> list[Path]:
    """Damage files of a directory; return those to dump."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix == case.ending)
    dumped_names = list(dict.fromkeys(names[place % len(names)] for place in case.files)) if names else []
    for kind, ending, share, number in case.damage:
        of_kind = [name for name in dumped_names if (folder / name).with_suffix(ending).exists()]
        if of_kind:
            path = (folder / of_kind[number % len(of_kind)]).with_suffix(ending)
            path.write_bytes(_CHANGES[kind](path.read_bytes(), share, number))
    return [folder / name for name in dumped_names if has_index(folder / name)]


def has_index(path: Path) -> bool:
    """Return whether Kafka's tool can read a file: of a time index without an offset index beside it, it makes one.

    The last segment of a log has none before it was first asked, as in Kafka, whose tool then trips over its own.
    """
    return path.suffix != ".timeindex" or path.with_suffix(".index").exists()


def _flipped(data: bytes, share: float, number: int) -> bytes:
    return _put(data, share, lambda byte: byte ^ 1 << number % 8)


def _put(data: bytes, share: float, change: Callable[[int], int]) -> bytes:
    if not data:
        return data
    place = int(share * len(data))
    return data[:place] + bytes([change(data[place])]) + data[place + 1 :]


_CHANGES: Final[Mapping[str, Callable[[bytes, float, int], bytes]]] = {
    "flip": _flipped,
    "set": lambda data, share, number: _put(data, share, lambda _: number),
    "cut": lambda data, share, _: data[: int(share * len(data))],
    "zeros": lambda data, _, number: data + bytes(12 * 8 * (number % 5)),
    "swap": lambda data, share, _: data[int(share * len(data)) :] + data[: int(share * len(data))],
}
