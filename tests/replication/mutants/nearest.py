"""Order the test files by how near they are to a module.

What it decides: files that import the module come first, those in the folder of its package's tests next, then the
other files of the packages that use it. Files that start Spark, Kafka or a browser are left out.

Source: ours.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

FOLDERS: Final = ("tests/replication", "tests/broker", "tests/log")
_LEFT_OUT: Final = ("mutants", "fuzz", "crash")


def test_files(root: Path, path: str) -> list[str]:
    """Return the test files for the module at `path`, nearest first."""
    module = PurePosixPath(path).with_suffix("")
    package = f"tests/{module.parts[0]}"
    imported = re.compile(rf"\b{re.escape('.'.join(module.parts))}\b")
    room = re.compile(rf"from {re.escape('.'.join(module.parent.parts))} import")
    ranked = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("test_*.py")):
            name = file.relative_to(root).as_posix()
            if set(PurePosixPath(name).parts) & set(_LEFT_OUT):
                continue
            text = file.read_text(encoding="utf-8")
            rank = (
                not imported.search(text),
                module.name not in file.stem,
                not room.search(text),
                not name.startswith(f"tests/{module.parent.as_posix()}/"),
                not name.startswith(f"{package}/"),
            )
            ranked.append((rank, name))
    return [name for _, name in sorted(ranked)]
