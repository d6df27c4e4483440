"""Define the retention options of `simulate`.

Source: ours; the names are those of Kafka's topic and consumer settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import attrs
import click

from broker.errors import UsageError
from broker.ids import INT64_MAX
from broker.units import DurationMs, SizeBytes
from replication.retention.policy import NO_LIMIT, AutoOffsetReset, Retention
from replication.simulation.options import Options
from replication.simulation.retention import with_retention

_LIMIT: Final = click.IntRange(NO_LIMIT, INT64_MAX)
_RESETS: Final = tuple(reset.value for reset in AutoOffsetReset)


@attrs.frozen(kw_only=True)
class RetentionChoice:
    """Hold the retention options as given; None means not given."""

    retention: bool
    retention_ms: int | None
    retention_bytes: int | None
    compact: bool
    reset: str | None

    def applied(self, options: Options) -> Options:
        """Return the options of a run with the chosen retention; unchanged if none was chosen.

        Raises UsageError for --retention beside other options.
        """
        is_set = self.compact or any(each is not None for each in (self.retention_ms, self.retention_bytes, self.reset))
        if self.retention and is_set:
            raise UsageError("--retention draws everything from the seed; it is not given beside what it draws")
        if not self.retention and not is_set:
            return options
        return with_retention(options, None if self.retention else self._retention())

    def _retention(self) -> Retention:
        return Retention(
            retention_ms=DurationMs(NO_LIMIT if self.retention_ms is None else self.retention_ms),
            retention_bytes=SizeBytes(NO_LIMIT if self.retention_bytes is None else self.retention_bytes),
            compacts=self.compact,
            deletes=not self.compact or self.retention_ms is not None or self.retention_bytes is not None,
            reset=AutoOffsetReset.LATEST if self.reset is None else AutoOffsetReset(self.reset),
        )

    @property
    def text(self) -> str:
        """Return the options as text for a command line, each after a blank."""
        given = [" --retention" * self.retention]
        for name, number in (("retention-ms", self.retention_ms), ("retention-bytes", self.retention_bytes)):
            given += [] if number is None else [f" --{name} {number}"]
        given += [" --compact" * self.compact, "" if self.reset is None else f" --reset {self.reset}"]
        return "".join(given)


def retention_choices(command: Callable[..., int]) -> Callable[..., int]:
    """Add the retention options to a command, which receives them as `choice`."""

    @click.option("--retention", is_flag=True, help="Draw retention, compaction and DeleteRecords from the seed.")
    @click.option(
        "--retention-ms", type=_LIMIT, metavar="MS", help="Delete segments older than MS (default -1, no limit)."
    )
    @click.option(
        "--retention-bytes", type=_LIMIT, metavar="BYTES", help="Delete segments beyond BYTES (default -1, no limit)."
    )
    @click.option("--compact", is_flag=True, help="Write keyed records and compact the logs.")
    @click.option("--reset", type=click.Choice(_RESETS), help="auto.offset.reset of the consumers (default latest).")
    @wraps(command)
    # Click passes the command's own options too, whatever they are.
    def chosen(**given: Any) -> int:
        choice = RetentionChoice(**{field.name: given.pop(field.name) for field in attrs.fields(RetentionChoice)})
        return command(choice=choice, **given)

    return chosen
