"""Find cases of log storage below a folder, and archives of them; run one case.

A case is a folder with a `case.json`, whose `kind` says which runner answers it, and with real files beside it. An
archive (*.tar.xz) is unpacked to a temporary folder, and only if it is plain: files and folders inside it, no links,
no more than the limits below. Whatever a case holds, running it ends with a sentence or with None.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from broker.errors import BrokersideError
from tests.golden.runners import MalformedCaseError
from tests.golden.sources import UnknownSourceError, source_of_case

Json: TypeAlias = Any
LogRunner: TypeAlias = Callable[[Mapping[str, Json], Path], str | None]
"""Given what case.json holds and its folder, returns the first difference from what is expected, or None."""

CASE_NAME: Final = "case.json"
ARCHIVE_PATTERN: Final = "*.tar.xz"
ARCHIVE_SIZE_BYTES_MAX: Final = 1 << 30
"""How much an archive may hold unpacked; the greatest known holds 9 MB."""
ARCHIVE_MEMBER_COUNT_MAX: Final = 200_000
CASE_SIZE_BYTES_MAX: Final = 256 << 20


class UnsafeArchiveError(Exception):
    """An archive that is damaged, empty, too large, or would write outside its folder."""


def case_folders(folder: Path) -> list[Path]:
    """Return every folder at or below `folder` that holds a case, in order of path."""
    return sorted(path.parent for path in folder.rglob(CASE_NAME) if path.is_file())


def archives(folder: Path) -> list[Path]:
    """Return every archive below `folder`, in order of path."""
    return sorted(path for path in folder.rglob(ARCHIVE_PATTERN) if path.is_file())


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack `archive` for the time of the block and give the folder; raise UnsafeArchiveError."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        unpack(archive, Path(name))
        yield Path(name)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack `archive` into `folder`; raise UnsafeArchiveError before anything beyond the limits is written."""
    size_bytes = 0
    try:
        with tarfile.open(archive, "r:xz") as members:
            for count, member in enumerate(members, 1):
                size_bytes += member.size
                if count > ARCHIVE_MEMBER_COUNT_MAX or size_bytes > ARCHIVE_SIZE_BYTES_MAX:
                    raise UnsafeArchiveError(f"holds more than {ARCHIVE_SIZE_BYTES_MAX} bytes or too many files")
                if not (member.isreg() or member.isdir()):
                    raise UnsafeArchiveError(f"{member.name} is neither a file nor a folder")
                _extract(members, member, folder.resolve())
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as damage:
        raise UnsafeArchiveError(f"cannot be unpacked: {damage}") from damage


def _extract(members: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file or folder; raise UnsafeArchiveError outside of `folder`. Python has a filter since 3.11.4 only."""
    target = (folder / member.name).resolve()
    if not target.is_relative_to(folder):
        raise UnsafeArchiveError(f"{member.name!r} leads out of its folder")
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    content = members.extractfile(member)
    assert content is not None, member  # It is a file.
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as file:
        shutil.copyfileobj(content, file)


def run_case(folder: Path, runners: Mapping[str, LogRunner]) -> str | None:
    """Return why the case in `folder` does not pass, or None when it does."""
    path = folder / CASE_NAME
    try:
        if path.stat().st_size > CASE_SIZE_BYTES_MAX:
            return f"{CASE_NAME} has more than {CASE_SIZE_BYTES_MAX} bytes"
        case = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as damage:
        return f"unreadable: {damage}"
    kind = case.get("kind") if isinstance(case, Mapping) else None
    runner = runners.get(kind) if isinstance(kind, str) else None
    if runner is None:
        return f"unknown kind {kind!r}; known are {', '.join(sorted(runners))}"
    return _run(case, folder, runner)


def _run(case: Mapping[str, Json], folder: Path, runner: LogRunner) -> str | None:
    try:
        source_of_case(case)
        return runner(case, folder)
    except UnknownSourceError as unknown:
        return str(unknown)
    except (MalformedCaseError, KeyError) as damage:
        return f"malformed case: {type(damage).__name__}: {damage}"
    except FileNotFoundError as missing:
        return f"malformed case: the folder has no {os.path.relpath(missing.filename, folder)}"
    except BrokersideError as refusal:
        return f"refused: {refusal}"
    except Exception as crash:  # A crash of our code is a failed case, and the other cases still count.
        return f"crashed: {type(crash).__name__}: {crash}"
