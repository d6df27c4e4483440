"""Check the options of a data source, each against what it allows.

It gives the names of options and the text of a refusal. Names are compared without regard to case, as Spark does.

Example:
    >>> given = GivenOptions.of("kafka_cluster", {"path": "/dumps", "mode": "failfast"}, ("mode",))
    >>> given.paths(), given.choice("mode", ("PERMISSIVE", "FAILFAST"))
    (('/dumps',), 'FAILFAST')

Source: org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils, 4.3, for `path` and `paths`;
org.apache.spark.sql.catalyst.util.ParseMode for the three modes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from broker.errors import UsageError, shorten
from log.metadata import Moment
from spark_analysis.sources.inputs import moment
from spark_analysis.sources.listing import InputFile, Lookup, input_files, local_path

PERMISSIVE: Final = "PERMISSIVE"
DROP: Final = "DROPMALFORMED"
FAILFAST: Final = "FAILFAST"
MODES: Final = (PERMISSIVE, DROP, FAILFAST)
"""Spark's own three: a row with its fault, no row, or an error that ends the job."""

_PATHS: Final = ("path", "paths")
_FLAGS: Final = {"true": True, "false": False}
_LENGTH_MAX: Final = 18  # Digits of a whole number below 2**63.


@attrs.frozen
class GivenOptions:
    """Hold the options given to the data source `source`, by name in lower case."""

    source: str
    given: Mapping[str, str]

    @classmethod
    def of(cls, source: str, options: Mapping[str, Any], allowed: Sequence[str]) -> GivenOptions:
        """Return the options; raise UsageError for a name that is not allowed."""
        given = {str(name).lower(): str(value) for name, value in options.items()}
        known = {name.lower() for name in (*allowed, *_PATHS)}
        unknown = sorted(given.keys() - known)
        if unknown:
            raise UsageError(f"{source} has no option {unknown[0]!r}; it has {', '.join(allowed)}")
        return cls(source, given)

    def text(self, name: str) -> str | None:
        """Return the option as it was given; None if it was not, or is empty."""
        return self.given.get(name.lower()) or None

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """Return the option as one of `allowed`, in its spelling there; the first if it was not given."""
        value = self.text(name)
        if value is None:
            return allowed[0]
        found = next((each for each in allowed if each.lower() == value.lower()), None)
        if found is None:
            raise self._refusal(name, value, ", ".join(allowed))
        return found

    def flag(self, name: str, default: bool) -> bool:
        """Return the option as true or false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _FLAGS:
            raise self._refusal(name, value, "true or false")
        return _FLAGS[value.lower()]

    def number(self, name: str, *, low: int, high: int) -> int | None:
        """Return the option as a whole number between `low` and `high`, both allowed; None if it was not given."""
        value = self.text(name)
        if value is None:
            return None
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) <= _LENGTH_MAX and low <= int(value) <= high:
            return int(value)
        raise self._refusal(name, value, f"a whole number from {low} to {high}")

    def numbers(self, name: str, *, high: int) -> frozenset[int] | None:
        """Return the option as whole numbers from 0 to `high` with commas between them; None if it was not given."""
        found = self.names(name)
        given = [GivenOptions(self.source, {name.lower(): each}).number(name, low=0, high=high) for each in found]
        return frozenset(number for number in given if number is not None) if found else None

    def moment(self, name: str) -> Moment | None:
        """Return the option as an offset or a time of UTC; None if it was not given."""
        value = self.text(name)
        try:
            return None if value is None else moment(value)
        except UsageError:
            raise self._refusal(name, value or "", "a whole number, and UTC times such as 2026-11-21T18:30") from None

    def moments(self, name: str) -> tuple[Moment, ...]:
        """Return the option as offsets or times of UTC with commas between them, empty if it was not given."""
        found = (GivenOptions(self.source, {name.lower(): each}).moment(name) for each in self.names(name))
        return tuple(each for each in found if each is not None)

    def time_ms(self, name: str) -> int | None:
        """Return the option as ms since 1970, given so or as a time of UTC; None if it was not given."""
        found = self.moment(name)
        return None if found is None else found.offset if found.time_ms is None else found.time_ms

    def names(self, name: str) -> tuple[str, ...]:
        """Return the option as names with commas between them, empty if it was not given."""
        return tuple(part.strip() for part in (self.text(name) or "").split(",") if part.strip())

    def paths(self) -> tuple[str, ...]:
        """Return the paths to load as absolute paths, since a worker has a working directory of its own.

        Raises UsageError if there is none, or one is of another file system.
        """
        return tuple(absolute_path(path) for path in self.loaded())

    def files(self) -> list[InputFile]:
        """Return the dumps and metadata logs to load; raise UsageError as `paths` does, InputError if there is none."""
        lookup = Lookup(self.flag("recursiveFileLookup", False), self.text("pathGlobFilter"))
        return input_files(self.paths(), lookup)

    def loaded(self) -> tuple[str, ...]:
        """Return what is to be loaded as it was given; raise UsageError if there is nothing."""
        listed = self.text("paths")
        found = tuple(each for each in ([self.text("path")] if listed is None else json.loads(listed)) if each)
        if not found:
            raise UsageError(f"{self.source} needs a path: spark.read.format({self.source!r}).load(PATH)")
        return found

    def _refusal(self, name: str, value: str, allowed: str) -> UsageError:
        return UsageError(f"option {name!r} of {self.source} is {shorten(value)!r}; allowed are {allowed}")


def absolute_path(path: str) -> str:
    """Return a path or a file: URI as an absolute path; raise UsageError as `local_path` does."""
    return str(Path(local_path(path)).absolute())
