"""Copy a module out of an archive to a permanent path, so that numba can cache its machine code.

Goals, most important first: a kernel is never run on machine code of another version; once compiled on a machine, it is
compiled there no more; where nothing can be written, everything works as without this module.

How: the copy stands in numba's folder of the user, below a digest of the whole archive, since a kernel's constants may
come from its other modules. It is written beside its place and renamed, as other workers may do the same.

Source: numba 0.68 numba/core/caching.py: InTreeCacheLocator and ZipCacheLocator.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def lasting_source(file: str) -> str | None:
    """Return the path of a copy of a module's `file` if the file stands in an archive, and `file` otherwise.

    None is for a file in an archive where no copy can be written.
    """
    if Path(file).exists():
        return file
    archive = next((folder for folder in Path(file).absolute().parents if folder.is_file()), None)
    if archive is None:
        return file
    member = Path(file).absolute().relative_to(archive)
    with suppress(OSError, KeyError, zipfile.BadZipFile):
        copy = _folder() / f"brokerside-{_digest(archive)}" / member
        with zipfile.ZipFile(archive) as opened:
            data = opened.read(member.as_posix())
        if not copy.is_file() or copy.read_bytes() != data:  # Others may write to the user's cache directory too.
            _write(copy, data)
        return str(copy)
    return None


def _folder() -> Path:
    from numba.core import config  # Here, as in compiled.py.
    from numba.misc import appdirs

    chosen: str = getattr(config, "CACHE_DIR", "")
    users: Any = appdirs.AppDirs
    return Path(chosen or users("numba", appauthor=False).user_cache_dir)


@functools.cache
def _digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()[:12]


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = path.with_name(f"{path.name}.{os.getpid()}")  # No other process of this machine has it.
    own.write_bytes(data)
    own.replace(path)
