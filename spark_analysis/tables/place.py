"""Name where tables and a report stand: a folder of this machine, or a URI that Spark writes to.

URIs are read as Hadoop reads them: every character of a path stands for itself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, TypeAlias

from spark_analysis.tables.columns import Table

Place: TypeAlias = Path | str
"""A folder of this machine, or the URI of one that only Spark reaches."""
TABLES_FOLDER: Final = "tables"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILE: Final = re.compile(r"file:(//)?(?=/)")


def is_uri(given: str) -> bool:
    """Return whether a place is named by a URI; file:/ is one, too.

    >>> is_uri("s3a://lake/today"), is_uri("file:///tmp/today"), is_uri("today"), is_uri("a/b:c")
    (True, True, False, False)
    """
    return _URI.match(given) is not None


def place_of(given: str) -> Place:
    """Return the folder of this machine that a path or a file:/ URI names, and any other URI as it is.

    >>> place_of("file:///a%20b"), place_of("out"), place_of("s3a://lake/today/")
    (PosixPath('/a%20b'), PosixPath('out'), 's3a://lake/today')
    """
    if match := _FILE.match(given):
        return Path(given[match.end() :])
    return given.rstrip("/") if is_uri(given) else Path(given)


def inside(place: Place, name: str) -> str:
    """Return the path or URI of what has this name in a place."""
    return str(place / name) if isinstance(place, Path) else f"{place}/{name}"


def table_path(out: Path, table: Table) -> Path:
    """Return the folder of `table` under the run's folder `out`."""
    return (out / TABLES_FOLDER / table.name).absolute()


def table_uri(out: Place, table: Table) -> str:
    """Return the URI of the folder of `table` under `out`."""
    if isinstance(out, Path):
        return f"file://{table_path(out, table)}"
    return inside(out, f"{TABLES_FOLDER}/{table.name}")
