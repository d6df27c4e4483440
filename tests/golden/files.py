"""Find golden files below a folder, run them, and say what came of each.

A golden file is JSON with the common envelope: `algorithm`, `schema_version`, `source`, `cases`; it
is answered as the release of Kafka that `source` names. Anything that is not named *.json is passed
over; a JSON file that cannot be run is a failure, since a vector that nobody looks at proves
nothing. A damaged case fails; it never ends the run.

A folder that holds a `case.json` is a case of log storage, and a *.tar.xz an archive of such folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from broker.errors import BrokersideError
from tests.golden.log import LOG_RUNNERS
from tests.golden.log.cases import CASE_NAME, UnsafeArchiveError, archives, case_folders, unpacked
from tests.golden.log.cases import run_case as run_log_case
from tests.golden.runners import RUNNERS, Json, MalformedCaseError, Runner, first_difference, runners_of
from tests.golden.sources import UnknownSourceError, source_of

SCHEMA_VERSION: Final = 1
NO_CASES: Final = "has no cases"


@attrs.frozen
class Failure:
    """One case that did not pass, and where it first differs."""

    case: str
    difference: str


@attrs.frozen
class FileResult:
    """What came of one file: how many cases passed, and the others. `problem` is set when it could not be run."""

    name: str
    passed_count: int = 0
    failures: tuple[Failure, ...] = ()
    problem: str | None = None

    @property
    def failed_count(self) -> int:
        """Number of failures; a file that could not be run is one."""
        return len(self.failures) + (self.problem is not None)


@attrs.frozen
class GoldenFile:
    """A file whose envelope is sound: what answers its cases, and the cases as they stand."""

    runner: Runner
    cases: tuple[Json, ...]


class NotGoldenError(Exception):
    """A JSON file that is not golden vectors of a kind we know."""


def golden_paths(folder: Path) -> list[Path]:
    """Return every *.json below `folder` that is not a log case, in order of path."""
    return sorted(path for path in folder.rglob("*.json") if path.is_file() and path.name != CASE_NAME)


def load(path: Path) -> GoldenFile:
    """Return the file's cases and their runner; raise NotGoldenError with what is wrong."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as damage:
        raise NotGoldenError(f"unreadable: {damage}") from damage
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise NotGoldenError("not golden vectors: an object with `algorithm`, `schema_version` and `cases` is needed")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise NotGoldenError(f"schema_version is {document.get('schema_version')!r}; {SCHEMA_VERSION} is known")
    algorithm = document.get("algorithm")
    if not isinstance(algorithm, str) or algorithm not in RUNNERS:
        raise NotGoldenError(f"unknown algorithm {algorithm!r}; known are {', '.join(sorted(RUNNERS))}")
    if not document["cases"]:
        raise NotGoldenError(NO_CASES)
    try:
        source = source_of(document.get("source"))
    except UnknownSourceError as unknown:
        raise NotGoldenError(str(unknown)) from unknown
    return GoldenFile(runners_of(source.release)[algorithm], tuple(document["cases"]))


def run_case(case: Json, runner: Runner) -> str | None:
    """Return why `case` does not pass, or None when it does; nothing that a case holds ends the run."""
    if not isinstance(case, Mapping):
        return f"malformed case: {type(case).__name__} instead of an object"
    try:
        return first_difference(case, runner)
    except MalformedCaseError as damage:
        return f"malformed case: {damage}"
    except BrokersideError as refusal:
        return f"refused: {refusal}"
    except Exception as crash:  # A crash of our code is a failed case, and the other cases still count.
        return f"crashed: {type(crash).__name__}: {crash}"


def run_file(path: Path, name: str) -> FileResult:
    """Run every case of one file."""
    try:
        golden = load(path)
    except NotGoldenError as problem:
        return FileResult(name, problem=str(problem))
    failures = []
    for index, case in enumerate(golden.cases):
        difference = run_case(case, golden.runner)
        if difference is not None:
            failures.append(Failure(case_name(case, index), difference))
    return FileResult(name, len(golden.cases) - len(failures), tuple(failures))


def run_folder(folder: Path) -> Iterator[FileResult]:
    """Yield the result of each golden file, log case and archive of log cases below `folder`, as it is run."""
    for path in golden_paths(folder):
        yield run_file(path, str(path.relative_to(folder)))
    yield from run_log_cases(folder, "")
    for archive in archives(folder):
        name = str(archive.relative_to(folder))
        try:
            with unpacked(archive) as content:
                if not case_folders(content):
                    raise UnsafeArchiveError(NO_CASES)
                yield from run_log_cases(content, name)
        except UnsafeArchiveError as problem:
            yield FileResult(name, problem=str(problem))


def run_log_cases(folder: Path, prefix: str) -> Iterator[FileResult]:
    """Yield the result of each log case at or below `folder`, named by its path below `prefix`."""
    for case in case_folders(folder):
        name = str(Path(prefix) / case.relative_to(folder)) if case != folder else case.name
        difference = run_log_case(case, LOG_RUNNERS)
        yield FileResult(name, 1) if difference is None else FileResult(name, 0, (Failure(case.name, difference),))


def case_name(case: Json, index: int) -> str:
    """Return what a case calls itself, or its place in the file."""
    name = case.get("name") if isinstance(case, Mapping) else None
    return name if isinstance(name, str) and name else f"case {index}"
