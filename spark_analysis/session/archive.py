"""Pack our packages into the archive that executors import them from.

Equal packages give an archive of equal name and bytes, whenever and wherever they are packed. Third-party packages are
left to the executors, or to an archive of the user's (`--conf spark.archives=...`).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("broker", "log", "placement", "replication", "spark_analysis")
ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder of our packages, or the archive that this process imports them from."""


def zip_packages(path: Path) -> Path:
    """Write our packages, sources and data files, as a zip that Python imports from; return `path`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in _files():
            # An entry without a time of its own has that of 1980.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def write_archive(folder: Path) -> Path:
    """Write the packages into `folder` under a name that has a digest of them; return the file."""
    digest = hashlib.sha256()
    for name, data in _files():
        digest.update(f"{name} {len(data)} ".encode() + data)
    return zip_packages(folder / f"brokerside-{digest.hexdigest()[:12]}.zip")


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file of our packages, sorted by name."""
    if ROOT.is_file():
        with zipfile.ZipFile(ROOT) as archive:
            names = (name for name in archive.namelist() if name.split("/")[0] in _PACKAGES)
            yield from ((name, archive.read(name)) for name in sorted(names) if not name.endswith("/"))
        return
    for package in _PACKAGES:
        for file in sorted((ROOT / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(ROOT).as_posix(), file.read_bytes()
