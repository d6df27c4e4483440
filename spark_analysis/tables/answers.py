"""Write the files of one answer, Parquet tables and texts, into a folder: each file whole, earlier answers replaced.

A file that no earlier answer wrote is never replaced. Files are written in a hidden folder beside their places and then
renamed into them, `answer.json` last, which lists them; files that the earlier answer lists and this one does not write
are removed. Nothing here imports pyspark.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from broker.errors import InputError, UsageError

ANSWER_NAME: Final = "answer.json"
_HIDDEN: Final = ".brokerside.part"


def write_answer(out: Path, kind: str, files: Mapping[str, pa.Table | str]) -> tuple[Path, ...]:
    """Write `files` (name to table or text) into the folder `out` and return their paths.

    `kind` is the command whose answer it is. Raises InputError when `out` holds files of somebody else's.
    """
    if any("/" in name or name.startswith(".") or name == ANSWER_NAME for name in files):
        raise UsageError(f"files are named without folders, and not {ANSWER_NAME}: {sorted(files)}")
    stale = check_place(out, files) - set(files)
    if any((out / name).is_dir() for name in stale):
        raise InputError("holds a report; choose a new folder", source=str(out))
    made = not out.exists()
    hidden = out / _HIDDEN
    try:
        shutil.rmtree(hidden, ignore_errors=True)  # What an interrupted run left behind.
        hidden.mkdir(parents=True)
        for name, content in files.items():
            _write(hidden / name, content)
        listed = listing_text(kind, {name: sha256_of(hidden / name) for name in files})
        _write(hidden / ANSWER_NAME, listed)
        for name in (*files, ANSWER_NAME):
            (hidden / name).replace(out / name)
        for name in sorted(stale):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        # Writing into an open file names none; the folder says where there is no room.
        raise OSError(error.errno, error.strerror or str(error), error.filename or str(out)) from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()
    return tuple(out / name for name in files)


def check_place(out: Path, names: Collection[str]) -> set[str]:
    """Return what an earlier answer left in the folder `out`, in which these names may be written and replaced.

    Raises InputError for a folder with files but no earlier answer, and for a name that no earlier answer wrote or
    that is a link to a folder.
    """
    earlier = set(_earlier_files(out))
    for name in sorted(names):
        if (out / name).is_symlink() and (out / name).is_dir():
            raise InputError(f"{name} is a link to a folder, which is not followed", source=str(out))
        if (out / name).exists() and name not in earlier:
            raise InputError(f"holds a file {name} that no earlier answer wrote", source=str(out))
    return earlier


@contextlib.contextmanager
def claimed_folder(out: Path, kind: str, names: Collection[str]) -> Iterator[None]:
    """Take the folder `out` for files and folders of these names, which an earlier run of them may have left.

    answer.json lists them from the beginning, so that a killed run can be repeated; a block that raises before
    anything is written leaves nothing. Raises InputError as `check_place`, and for the answer of another command.
    """
    if stale := check_place(out, names) - set(names):
        raise InputError(f"holds {min(stale)}, an answer of another command; choose a new folder", source=str(out))
    made = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    hidden = out / _HIDDEN
    hidden.unlink(missing_ok=True)
    _write(hidden, answer_text({"kind": kind, "files": sorted(names)}))
    hidden.replace(out / ANSWER_NAME)
    try:
        yield
    finally:
        if [path.name for path in out.iterdir()] == [ANSWER_NAME]:
            (out / ANSWER_NAME).unlink()
            if made:
                out.rmdir()


def answer_text(summary: Mapping[str, Any]) -> str:
    """Return an answer as the text of its JSON file."""
    return json.dumps(summary, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def listing_text(kind: str, sha256: Mapping[str, str]) -> str:
    """Return the text of answer.json: the command, the files of its answer, and the digest of each."""
    return answer_text({"kind": kind, "files": sorted(sha256), "sha256": dict(sorted(sha256.items()))})


def sha256_of(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _earlier_files(out: Path) -> tuple[str, ...]:
    """Return the names of the files of an earlier answer; raise InputError for a folder with other files."""
    if not out.exists():
        return ()
    if not out.is_dir():
        raise InputError("is not a folder", source=str(out))
    names = [path.name for path in out.iterdir() if path.name != _HIDDEN]
    if not names:
        return ()
    listed = _listed(out / ANSWER_NAME)
    if listed is None:
        raise InputError("is not empty and holds no earlier answer; choose a new folder", source=str(out))
    return listed


def _listed(path: Path) -> tuple[str, ...] | None:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, list) or not all(isinstance(name, str) and Path(name).name == name for name in files):
        return None
    return tuple(files)


def _write(path: Path, content: pa.Table | str) -> None:
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8", newline="\n")
    else:
        pq.write_table(content, path, compression="zstd")
