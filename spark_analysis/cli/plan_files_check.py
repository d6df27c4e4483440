"""Check the files of a plan's folder: each is made again from the checked plan, and compared byte by byte.

What it decides: which files are missing, unknown or others than plan, input, goal and batches make of them. The texts
are what a person reads, copies and runs. Of the batches the folder decides only which partition is in which. What does
not follow from the plan, such as the notes of summary.json, has its digest in the certificate; and answer.json has the
digest of every file. A table that another release of pyarrow wrote has other bytes: then its digest alone counts.

Example: a line more in commands.txt gives "commands.txt is not what the plan makes of it, from line 3: 'rm -rf /'".
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from broker.cluster import ClusterView, Int64Array
from broker.errors import InputError, NothingUsableError, shorten
from broker.ids import INT64_MAX
from placement.formats.certificates import summary_digest
from placement.formats.documents import JSON_BYTES_MAX, parse_object
from placement.formats.plans import read_plan
from placement.planning.reassignment import Reassignment
from spark_analysis.cli.plan_folder import PLANNED, SUMMARY, Planned, parquet_bytes
from spark_analysis.report.figures import plural
from spark_analysis.tables.answers import ANSWER_NAME, listing_text, sha256_of

_BATCH: Final = re.compile(r"batch-\d{2,}\.json")
_STRANGERS_SHOWN_MAX: Final = 20
_EXCERPT: Final = 60
_SECONDS: Final = ("seconds_at_throttle", "seconds_bound", "seconds_bound_in_batches")


def read_reassignment(path: Path, view: ClusterView) -> tuple[Reassignment, list[str]]:
    """Return the plan in a file, and which of its entries cannot be used; one without entries changes nothing.

    Raises InputError for a file that cannot be read.
    """
    text = read_text(path)
    nothing = Reassignment(view=view, rows=[], replicas=np.empty((0, 1), dtype=np.int32))
    if text.replace(" ", "").strip() == '{"version":1,"partitions":[]}':
        return nothing, []
    try:
        read = read_plan([text.encode()], source=path.name, view=view)
    except NothingUsableError as refused:
        return nothing, [f"{path.name}: {refused.what}"]
    return read.reassignment, [f"{path.name}: {reject.reason}" for reject in read.rejects]


def batches_of(folder: Path, plan: Reassignment) -> tuple[list[Int64Array], list[str]]:
    """Return the places of the plan in each batch of the folder, each in its first one, and what is wrong with that."""
    place_of = {int(row): place for place, row in enumerate(plan.rows.tolist())}
    batches, found = [], []
    for path in sorted(each for each in folder.glob("batch-*.json") if _BATCH.fullmatch(each.name)):
        try:
            part, refused = read_reassignment(path, plan.view)
        except InputError as error:
            found.append(str(error))
            continue
        found += refused
        mine = [place_of.pop(row) for row in part.rows.tolist() if row in place_of]
        batches.append(np.array(sorted(mine), dtype=np.int64))
    if place_of:
        found.append(f"{plural(len(place_of), 'partition')} of plan.json is in no batch")
    return batches, found


def faults_of_files(folder: Path, planned: Planned, summary_sha256: str | None) -> list[str]:
    """Return which files are not what the plan makes of them, with the place where a text begins to differ.

    `summary_sha256` is the digest of the summary that the certificate has.
    """
    summary, found = _summary(folder, planned, summary_sha256)
    texts, tables = planned.texts(summary), planned.tables()
    names = {*texts, *(f"{name}.parquet" for name in tables)}
    if found or not (folder / SUMMARY).exists():  # They say what a summary says, and this one is another.
        texts = {name: text for name, text in texts.items() if name not in ("certificate.json", "plan.html", SUMMARY)}
    there = {path.name for path in folder.iterdir()}
    digests = _digests(folder)
    found += [f"{name}: is missing; a plan's folder has it" for name in sorted({*names, *digests, ANSWER_NAME} - there)]
    strangers = sorted(there - names - {ANSWER_NAME})
    found += [f"{name} is no file of this plan" for name in strangers[:_STRANGERS_SHOWN_MAX]]
    for name in sorted(there & texts.keys()):
        found += _faults_of_text(folder / name, texts[name])
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        if path.name in there:
            found += _faults_of_table(path, table, digests.get(path.name))
    found += _faults_of_listing(folder, sorted(names & there), digests)
    return found


def read_text(path: Path) -> str:
    """Return the text of a file; raise InputError for one that is missing, too large or not UTF-8."""
    if regular(path).stat().st_size > JSON_BYTES_MAX:
        raise InputError(f"is larger than {JSON_BYTES_MAX:,} bytes", source=path.name)
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", source=path.name) from None


def regular(path: Path) -> Path:
    """Return the path of a regular file; raise InputError if there is none: a pipe has no end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is not a regular file", source=path.name)
    except FileNotFoundError:
        raise InputError("is missing; a plan's folder has it", source=path.name) from None
    return path


def _summary(folder: Path, planned: Planned, sha256: str | None) -> tuple[Mapping[str, Any], list[str]]:
    """Return the summary with the numbers that the plan has, and the fault of one that the certificate does not know.

    The page needs a summary; where there is none that can be read, it is made of the numbers alone.
    """
    figures: dict[str, Any] = planned.figures()
    bare = {"cluster": "", "least_of": "", **figures, "notes": [], **dict.fromkeys(_SECONDS)}
    try:
        read = parse_object(read_text(folder / SUMMARY), source=SUMMARY)
    except InputError as error:
        return bare, [] if "missing" in str(error) else [str(error)]
    wrong = [
        f"{SUMMARY} says {name} is {read.get(name)!r}; it is {value!r}"
        for name, value in figures.items()
        if name != "goal" and read.get(name, ...) != value
    ]
    if not wrong and (summary_digest(read) != sha256 or not _is_summary(read)):
        wrong = [f"{SUMMARY} is not the one that the certificate was written with"]
    return bare if wrong else read | figures, wrong


def _is_summary(read: Mapping[str, Any]) -> bool:
    """Return whether what does not follow from the plan has the types that the page needs."""
    notes, seconds = read.get("notes"), [read.get(name, "") for name in _SECONDS]
    texts = [read.get("cluster"), read.get("least_of"), *notes] if isinstance(notes, list) else [None]
    return all(isinstance(text, str) for text in texts) and all(
        one is None or (isinstance(one, int | float) and abs(one) < INT64_MAX) for one in seconds
    )


def _faults_of_text(path: Path, wanted: str) -> Iterator[str]:
    """Yield where a text begins to differ from what the plan makes of it."""
    try:
        size, expected = regular(path).stat().st_size, wanted.encode()
        with path.open("rb") as file:
            read = file.read(len(expected) + _EXCERPT)
    except InputError as error:
        yield str(error)
        return
    if read == expected and size == len(expected):
        return
    pairs = zip(read, expected, strict=False)
    place = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(read), len(expected)))
    line = expected.count(b"\n", 0, place) + 1
    has, makes = (shorten(repr(text[place : place + _EXCERPT].decode("utf-8", "replace"))) for text in (read, expected))
    yield f"{path.name} is not what the plan makes of it, from line {line}: it has {has}, not {makes}"


def _faults_of_table(path: Path, table: pa.Table, sha256: str | None) -> Iterator[str]:
    """Yield the fault of a table that differs from the one made from the plan."""
    try:
        wanted, size = parquet_bytes(table), regular(path).stat().st_size
        if size == len(wanted) and path.read_bytes() == wanted:
            return
        ours, other = (pq.read_metadata(source).created_by for source in (pa.BufferReader(wanted), path))
        if ours != other and sha256 == sha256_of(path):
            return
    except InputError as error:
        yield str(error)
        return
    except (pa.ArrowException, OSError):
        pass
    yield f"{path.name} is not what the plan makes of it"


def _digests(folder: Path) -> dict[str, str]:
    """Return the digests that answer.json lists by file; none where it cannot be read."""
    try:
        listed = parse_object(read_text(folder / ANSWER_NAME), source=ANSWER_NAME).get("sha256")
    except InputError:
        return {}
    return {str(name): str(one) for name, one in listed.items()} if isinstance(listed, dict) else {}


def _faults_of_listing(folder: Path, names: Sequence[str], digests: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that are others than when answer.json was written, and what else is wrong with that file."""
    if not (folder / ANSWER_NAME).exists():
        return
    now = {name: sha256_of(folder / name) for name in names if (folder / name).is_file()}
    changed = [name for name in now if now[name] != digests.get(name)]
    for name in changed:
        yield f"{name} is not the file that {ANSWER_NAME} lists"
    if not changed and digests.keys() == now.keys():
        yield from _faults_of_text(folder / ANSWER_NAME, listing_text(PLANNED, now))
    elif not changed:
        yield f"{ANSWER_NAME} lists other files than a plan has"
