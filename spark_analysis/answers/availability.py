"""Ask for the chance that a partition is leaderless, under min-ISR or lost: in a moment, a rack's outage, a power cut.

It gives the table `availability`, a row per cluster and event; and what is shown of many clusters: the mean and the
99th percentile over clusters of each chance, and what that makes of a year."""

from __future__ import annotations

from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import ClusterView
from placement.risks.availability import EVENTS, MOMENT, POWER_CUT, RACK, STATES, EventRisk, availability
from placement.risks.draws import DRAWS_MAX, DRAWS_MIN
from placement.risks.rates import MINUTES_PER_YEAR, Rates
from spark_analysis.answers.question import Assumption, Cell, Field, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import groups, is_of_one_placer, mean, quantile
from spark_analysis.tables.columns import KEY, Column, Table

SEED_MAX: Final = 2**53  # An assumption is a double.
SEED: Final = Assumption("seed", 0, "Seed of the draws", "", high=SEED_MAX, whole=True)
RATES: Final = tuple(
    Assumption(
        field.name,
        float(field.default or 0),
        field.metadata["meaning"],
        field.metadata["unit"],
        field.metadata["source"],
        low=field.metadata["low"],
        high=field.metadata["high"],
    )
    for field in attrs.fields(Rates)
)
"""The rates of placement.risks as assumptions."""
DRAWS: Final = Assumption("draws", 1024, "Draws of each event", "draws", low=DRAWS_MIN, high=DRAWS_MAX, whole=True)
_MEANINGS: Final = {
    "leaderless": "leaderless",
    "under_min_isr": "under min-ISR, leaderless ones too; null where min.insync.replicas is not known",
    "lost": "lost: every replica that has all committed records is on a broker lost with its disks",
}


def _columns(state: str) -> tuple[Column, ...]:
    meaning = _MEANINGS[state]
    return (
        Column(f"{state}_chance", "double", f"Chance that some partition is {meaning}", nullable=True),
        Column(f"{state}_chance_error", "double", "Standard error of that chance, of the draws alone", nullable=True),
        Column(f"{state}_count_mean", "double", f"Mean of the partitions that are {meaning}", "partitions", True),
        Column(f"{state}_count_p99", "long", "Most of them in 99 of 100 cases", "partitions", True),
    )


AVAILABILITY: Final = Table(
    "availability",
    "one row per cluster and event: moment, rack where racks are known, power cut",
    (
        *KEY,
        Column("event", "string", "moment: any moment; rack: one rack is down; power cut: power is back after one"),
        Column("per_year", "double", "How often the event begins, by what was assumed; null for a moment", "", True),
        Column("draw_count", "long", "Draws of the event", "draws"),
        *(column for state in STATES for column in _columns(state)),
    ),
)


def rates_of(values: Values) -> Rates:
    """Return the rates among the values of assumptions."""
    return Rates(**{one.name: values[one.name] for one in RATES})


def availability_table(view: ClusterView, values: Values) -> pa.Table:
    """Return the risks of one cluster, a row for each event; raise UsageError for a view that lists only a part."""
    risks = availability(view, rates_of(values), draw_count=int(values["draws"]), seed=int(values["seed"]))
    rows = [_row(one) for one in risks]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(AVAILABILITY.arrow_schema())[len(KEY) :]))


def _row(risk: EventRisk) -> dict[str, Any]:
    row: dict[str, Any] = {"event": risk.event, "per_year": risk.per_year, "draw_count": risk.draw_count}
    for name, found in risk.states.items():
        if name == "under_min_isr" and not risk.judged:
            continue
        row |= {
            f"{name}_chance": found.chance,
            f"{name}_chance_error": found.chance_error,
            f"{name}_count_mean": found.mean,
            f"{name}_count_p99": found.p99,
        }
    return row


_BY: Final = (Field("shape", "shape"), Field("placer", "placer"))
_TITLES: Final = {"lost": "lost", "leaderless": "leaderless", "under_min_isr": "under min-ISR"}
_CHANCES: Final = tuple(
    Field(f"{state}_chance_{what}", f"{_TITLES[state]}, {what}", "chance")
    for state in ("lost", "leaderless", "under_min_isr")
    for what in ("mean", "p99")
)
_YEARS: Final = (
    Field("under_min_isr_minutes", "minutes a year with some partition under min-ISR", "decimal"),
    Field("leaderless_minutes", "minutes a year with some leaderless", "decimal"),
    Field("losses", "power cuts a year that lose data", "chance"),
)


def _show(rows: pa.Table, values: Values) -> Shown:
    order = {name: place for place, name in enumerate(EVENTS)}
    chances: list[tuple[Cell, ...]] = []
    for key, some in groups(rows, ("shape", "placer", "event")):
        columns = [some[f"{state}_chance"].to_pylist() for state in ("lost", "leaderless", "under_min_isr")]
        chances.append((*key, *(cell for column in columns for cell in (mean(column), quantile(column, 0.99)))))
    chances.sort(key=lambda row: (str(row[0]), str(row[1]), order[str(row[2])]))
    years = [(*key, *_year(some, values)) for key, some in groups(rows, ("shape", "placer"))]
    return Shown(
        _headline(rows, values)
        + "The chance that some partition of a cluster is lost, leaderless or under min-ISR: at any moment, while one "
        "rack is down, and once power is back after a cut that stops all brokers. Mean and 99th percentile are over "
        "clusters.",
        (
            ShownTable("chances", "Chances by event", (*_BY, Field("event", "event"), *_CHANCES), tuple(chances)),
            ShownTable("years", "What that makes of a year, mean over clusters", (*_BY, *_YEARS), tuple(years)),
        ),
        ("Rates are assumptions from studies of other systems: put in your own. Events are taken one at a time.",),
    )


def _headline(rows: pa.Table, values: Values) -> str:
    """Return for how long a year partitions are leaderless or under min-ISR; "" of several placers."""
    if not is_of_one_placer(rows):
        return ""
    good = rows.filter(pc.is_null(rows["fault"]))
    under, leaderless, _ = _year(good, values) if good.num_rows else (None, None, None)
    parts = [
        f"{words} for {minutes:,.{0 if minutes >= 10 else 2}f} minutes"
        for words, minutes in (("leaderless", leaderless), ("under min-ISR", under))
        if isinstance(minutes, float)
    ]
    return f"In a year some partition of a cluster is {' and '.join(parts)}. " if parts else ""


def _year(some: pa.Table, values: Values) -> tuple[Cell, ...]:
    """Return the minutes a year under min-ISR and leaderless, and the losses by power cuts, means over clusters."""
    lengths = {
        MOMENT: MINUTES_PER_YEAR,
        RACK: values["rack_outage_minutes"],
        POWER_CUT: values["replace_hours"] * 60,
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for row in some.to_pylist():
        found.setdefault(row["event"], []).append(row)

    def per_year(event: str, state: str, length: float) -> float | None:
        chances = [(row[f"{state}_chance"], row["per_year"]) for row in found[event]]
        return mean([None if c is None else c * length * (1 if often is None else often) for c, often in chances])

    minutes = []
    for state in ("under_min_isr", "leaderless"):
        parts = [per_year(event, state, lengths[event]) for event in EVENTS if event in found]
        minutes.append(sum(part for part in parts if part is not None) if None not in parts else None)
    return (*minutes, per_year(POWER_CUT, "lost", 1.0))


QUESTION: Final = Question(
    table=AVAILABILITY,
    title="How available are the partitions?",
    answer=availability_table,
    show=_show,
    assumptions=(DRAWS, SEED, *RATES),
)
