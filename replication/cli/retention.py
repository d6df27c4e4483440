"""The options of `simulate` that say how logs are cut and compacted.

It decides what they mean together: --upkeep draws everything from the seed; any other option begins with logs that only
grow and sets what it says, and all that is drawn is left out. --compact alone is cleanup.policy=compact, with a
retention it is compact,delete.

Example: `simulate --compact --retention-ms 20000`.

Source: ours; the names are those of Kafka's topic and consumer settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import attrs
import click

from broker.errors import UsageError
from broker.units import DurationMs, SizeBytes
from replication.retention.policy import NO_LIMIT, Reset, Upkeep
from replication.simulation.options import Options
from replication.simulation.retention import with_upkeep

_LIMIT: Final = click.IntRange(NO_LIMIT, 2**63 - 1)
_RESETS: Final = tuple(reset.value for reset in Reset)


@attrs.frozen(kw_only=True)
class UpkeepChoice:
    """What was asked for; None was not."""

    upkeep: bool
    retention_ms: int | None
    retention_bytes: int | None
    compact: bool
    reset: str | None

    def applied(self, options: Options) -> Options:
        """Return the options of a run with the upkeep that was asked for, unchanged for none.

        Raises UsageError for --upkeep beside others.
        """
        is_set = self.compact or any(each is not None for each in (self.retention_ms, self.retention_bytes, self.reset))
        if self.upkeep and is_set:
            raise UsageError("--upkeep draws everything from the seed; it is not given beside what it draws")
        if not self.upkeep and not is_set:
            return options
        return with_upkeep(options, None if self.upkeep else self._upkeep())

    def _upkeep(self) -> Upkeep:
        return Upkeep(
            retention_ms=DurationMs(NO_LIMIT if self.retention_ms is None else self.retention_ms),
            retention_bytes=SizeBytes(NO_LIMIT if self.retention_bytes is None else self.retention_bytes),
            compacts=self.compact,
            deletes=not self.compact or self.retention_ms is not None or self.retention_bytes is not None,
            reset=Reset.LATEST if self.reset is None else Reset(self.reset),
        )

    @property
    def text(self) -> str:
        """The options again, each after a blank."""
        given = [" --upkeep" * self.upkeep]
        for name, number in (("retention-ms", self.retention_ms), ("retention-bytes", self.retention_bytes)):
            given += [] if number is None else [f" --{name} {number}"]
        given += [" --compact" * self.compact, "" if self.reset is None else f" --reset {self.reset}"]
        return "".join(given)


def upkeep_choices(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of upkeep; it gets them as `choice`."""

    @click.option("--upkeep", is_flag=True, help="Cut and compact logs, and delete records, as the seed draws it.")
    @click.option("--retention-ms", type=_LIMIT, metavar="MS", help="Delete segments that are older; -1 is no limit.")
    @click.option("--retention-bytes", type=_LIMIT, metavar="BYTES", help="Keep no more of a log; -1 is no limit.")
    @click.option("--compact", is_flag=True, help="Write keys, and keep the last record of each.")
    @click.option("--reset", type=click.Choice(_RESETS), help="What consumers out of range do.")
    @wraps(command)
    # Click hands over what the command's own options say, whatever it is.
    def chosen(**given: Any) -> int:
        choice = UpkeepChoice(**{field.name: given.pop(field.name) for field in attrs.fields(UpkeepChoice)})
        return command(choice=choice, **given)

    return chosen
