"""Hold how often brokers, racks and power fail, and for how long: defaults with their sources.

Defaults come from published studies of other systems on other hardware: a cluster's own record is always better.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from broker.errors import UsageError

HOURS_PER_YEAR: Final = 8_766.0  # 365.25 days.
MINUTES_PER_YEAR: Final = 60 * HOURS_PER_YEAR
_FORD: Final = "Ford et al., Availability in Globally Distributed Storage Systems, OSDI 2010"
_HDFS: Final = "HDFS chapter of The Architecture of Open Source Applications"


def rate(default: float, unit: str, meaning: str, source: str, high: float) -> Any:
    """Define a field of `Rates` with its unit, meaning, source and limits."""
    return attrs.field(
        default=default, metadata={"unit": unit, "meaning": meaning, "source": source, "low": 0.0, "high": high}
    )


@attrs.frozen(kw_only=True)
class Rates:
    """Hold the rates; `attrs.fields(Rates)` has unit, meaning, source and limits of each in its metadata.

    Raises UsageError for a value beyond the limits.
    """

    broker_outages_per_year: float = rate(
        2.8, "per broker", "Outages after which a broker is back with its disks", f"{_FORD}: 4.3 months between", 1e4
    )
    broker_outage_minutes: float = rate(
        15.0, "minutes", "Mean length of such an outage", f"{_FORD}: fewer than a tenth last longer", 1e5
    )
    broker_losses_per_year: float = rate(
        0.096, "per broker", "Losses of a broker with its disks", f"{_HDFS}: 0.8 % of nodes a month", 1e3
    )
    replace_hours: float = rate(
        24.0, "hours", "Mean time until an empty broker has copied back what was lost", "ours: a day", 1e4
    )
    rack_outages_per_year: float = rate(
        0.1, "per rack", "Outages of a rack or zone, its disks unharmed", f"{_FORD}: 10.2 years between", 1e3
    )
    rack_outage_minutes: float = rate(60.0, "minutes", "Mean length of a rack's outage", "ours: an hour", 1e5)
    power_cuts_per_year: float = rate(
        0.1, "per cluster", "Power cuts that stop all brokers at once", "ours: one in ten years", 1e3
    )
    power_cut_lost_percent: float = rate(
        1.0, "percent", "Brokers that a power cut loses with their disks", f"{_HDFS}: 0.5 to 1 %", 100.0
    )

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value, low, high = getattr(self, field.name), field.metadata["low"], field.metadata["high"]
            if not low <= value <= high:
                raise UsageError(f"{field.name} is {value:g}; allowed is a number from {low:g} to {high:g}")

    @property
    def lost_share(self) -> float:
        """Return the share of time that a broker is lost and not yet replaced."""
        return _share(self.broker_losses_per_year * self.replace_hours / HOURS_PER_YEAR)

    @property
    def down_share(self) -> float:
        """Return the share of time that a broker is down, lost or not."""
        outages = _share(self.broker_outages_per_year * self.broker_outage_minutes / MINUTES_PER_YEAR)
        return 1 - (1 - outages) * (1 - self.lost_share)


def _share(times: float) -> float:
    """Return the share of time in a state that is entered so many times its mean length, if it could overlap."""
    return times / (1 + times)
