"""Read the cluster and the moment of a dump from its path, such as north-2026-11-27.txt or 2026-11-27/north.txt.

What it decides: a date has year, month and day (2026-11-27, 20261127, 27.11.2026 with the day first unless that is no
date), perhaps with a time of day after it (T06:30, -06-30-00Z, -9am, a number within the day); ten or thirteen digits
are seconds or milliseconds since 1970. Where several stand in a path the last counts. A number behind the ending is
that of a rotated file, the highest the oldest; one before it rises with time. The cluster is what is left of the path,
without ending and separators: digits in it, as in kafka-2, belong to it.

    >>> [str(of_path(path)) for path in ("north-2026-11-27.txt.gz", "2026/11/27/north.txt", "k-2_20261127T0630.txt")]
    ['north 2026-11-27', 'north 2026-11-27', 'k-2 2026-11-27 06:30']
    >>> [str(of_path(path)) for path in ("north.txt.2", "north.2.txt", "10.0.0.1.txt", "2026-11-27-kafka-2.txt")]
    ['north .2', 'north .2', '10.0.0.1', 'kafka-2 2026-11-27']
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs

from spark_analysis.sources.files import COMPRESSED

_OF_DAY: Final = (
    r"(?:(?P<of_half>0?[1-9]|1[0-2])(?:[:.\-_h]?(?P<past>[0-5]\d)(?:[:.\-_m]?(?P<beyond>[0-5]\d))?)?"
    r"[ _.\-]?(?P<half>[ap])\.?m"
    r"|(?P<hour>[01]\d|2[0-3])(?:[:.\-_h]?(?P<minute>[0-5]\d)"
    r"(?:[:.\-_m]?(?P<second>[0-5]\d)s?(?:[.,]\d{1,9})?)?))"
)
_ZONE: Final = r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
_DATE: Final = re.compile(
    r"(?<!\d)(?:(?P<year>20\d\d)(?P<mark>[-_./]?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
    r"|(?P<first>\d\d)(?P<dot>[-_.])(?P<middle>\d\d)(?P=dot)(?P<last>20\d\d))"
    rf"(?:[T_\-. /]?{_OF_DAY}?{_ZONE}(?![\dA-Za-z]))?(?!\d)",
    re.IGNORECASE | re.ASCII,
)
_TIME: Final = re.compile(rf"(?<![\dA-Za-z])T?{_OF_DAY}{_ZONE}(?![\dA-Za-z])", re.IGNORECASE | re.ASCII)
_SINCE_1970: Final = re.compile(r"(?<!\d)(?:1[4-9]|2[01])\d{8}(?:\d{3})?(?!\d)", re.ASCII)
_CUT: Final = "\0"  # Stands where a date was; no path has it.
_ENDING: Final = re.compile(rf"\.[A-Za-z][A-Za-z0-9]{{0,9}}(?=[-_.]?{_CUT}?$)", re.ASCII)
_ROTATED: Final = re.compile(r"(.*(?:\.[A-Za-z][A-Za-z0-9]{0,9}|[^\d/.]))\.(\d{1,3})", re.ASCII)
_RISING: Final = re.compile(
    rf"(.*[^/])(?:(?<!\.\d)(?<!\.\d\d)(?<!\.\d\d\d)\.|(?<={_CUT})[-_#( ]{{1,2}})(\d{{1,3}})\)?", re.ASCII
)
_SEPARATORS: Final = " -_.#()"
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class NamedMoment:
    """Hold what a path says: the cluster, the time in UTC, and a number that rises with time among dumps of one time.

    `is_timed` tells whether the path has a time of day, too. None is what the path does not say.
    """

    cluster: str
    time: datetime | None = None
    is_timed: bool = False
    number: int | None = None

    @property
    def label(self) -> str | None:
        """Return the moment in words; None if the path says none."""
        shown = "" if self.time is None else f"{self.time:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
        shown = shown if self.is_timed else shown[:10]
        return f"{shown}{'' if self.number is None else f' .{abs(self.number)}'}".strip() or None

    @property
    def order(self) -> tuple[bool, datetime, int]:
        """Return the place in time; a dump without a time comes after those that have one."""
        return self.time is None, self.time or _FIRST, self.number or 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.cluster, self.label)))


def of_path(path: str, *, has_ending: bool = True) -> NamedMoment:
    """Return the cluster and the moment that a relative path with / names; a folder's has no ending."""
    for ending in COMPRESSED:
        path = path.removesuffix(ending)
    rest, time, is_timed = _without_dates(path)
    number = None
    if rotated := _ROTATED.fullmatch(rest):
        rest, number = rotated[1], -int(rotated[2])
    rest = _ENDING.sub("", rest) if has_ending else rest
    if number is None and (rising := _RISING.fullmatch(rest)):
        rest, number = rising[1], int(rising[2])
    if time is not None and not is_timed and (found := [*_TIME.finditer(rest)]):
        time, is_timed = _at(time, found[-1]), True
        rest = rest[: found[-1].start()] + rest[found[-1].end() :]
    return NamedMoment(_cluster_of(rest), time, is_timed, number)


def _without_dates(path: str) -> tuple[str, datetime | None, bool]:
    """Return the path with a sign for each date in it, the time of the last date, and whether it has a time of day."""
    time, is_timed = None, False
    for found in [*_DATE.finditer(path)][::-1]:
        day = _day(found)
        if day is not None:
            path = path[: found.start()] + _CUT + path[found.end() :]
            has_time = found["hour"] is not None or found["of_half"] is not None
            if time is None or (has_time and not is_timed):
                time, is_timed = _at(day, found), has_time
    for found in [*_SINCE_1970.finditer(path)][::-1]:
        path = path[: found.start()] + _CUT + path[found.end() :]
        if not is_timed:
            seconds = int(found[0]) / (1 if len(found[0]) == 10 else 1000)
            time, is_timed = _FIRST + timedelta(seconds=int(seconds)), True
    return path, time, is_timed


def _day(found: re.Match[str]) -> datetime | None:
    """Return the day of a date at midnight; None for one that is in no calendar."""
    if found["year"]:
        orders = [(found["year"], found["month"], found["day"])]
    else:
        orders = [(found["last"], found["middle"], found["first"]), (found["last"], found["first"], found["middle"])]
    for year, month, day in orders:
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None


def _at(day: datetime, found: re.Match[str]) -> datetime:
    """Return the time of day of a match on this day, in UTC."""
    time = day + timedelta(**{f"{unit}s": int(found[unit] or 0) for unit in ("hour", "minute", "second")})
    if found["half"]:
        hour = int(found["of_half"]) % 12 + 12 * (found["half"] in "pP")
        time = day + timedelta(hours=hour, minutes=int(found["past"] or 0), seconds=int(found["beyond"] or 0))
    zone = (found["zone"] or "Z").upper().replace(":", "")
    if zone == "Z":
        return time
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
    return time - ahead if zone[0] == "+" else time + ahead


def _cluster_of(rest: str) -> str:
    parts = [
        re.sub(rf"[{re.escape(_SEPARATORS)}]*{_CUT}[{re.escape(_SEPARATORS)}]*", "-", part) for part in rest.split("/")
    ]
    named = [part for each in parts if (part := each.strip(_SEPARATORS))]
    return "/".join(part for place, part in enumerate(named) if place == 0 or part != named[place - 1])
