"""Measure how fast chances of outages and years of losses are computed, and print the table of placers.

    availability   clusters of 100 brokers and 10,000 partitions, striped on three racks: partition-draws per CPU second
    years          cluster-years per CPU second, 1,000 brokers on three racks, a million partitions
    placers        copysets, scatter width, what one broker takes over and losses of each placer, with racks and without

How: CPU seconds of this process, medians of three rounds after a warm-up; clusters are made outside of the time that
`availability` counts, and inside of `whole`. `--small` divides the sizes by ten.

Run `python -m tests.benchmarks.risks [availability|years|placers]... [--small]`.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence

import attrs

from broker.cluster import ClusterView
from placement.risks.availability import availability
from placement.risks.durability import Years, durability
from placement.risks.rates import Rates
from spark_analysis.fleet.generate import Fleet, make_cluster
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.recipe import RackPlan, Recipe, Shape, Span, TopicPlan
from spark_analysis.fleet.views import view_of

ROUNDS = 3
DRAWS = 1024
CLUSTERS = 100


def fleet_of(brokers: int, topics: int, racks: int) -> Fleet:
    shape = Shape(
        name=f"{brokers} brokers, {racks or 'no'} racks",
        brokers=Span(brokers, brokers),
        racks=RackPlan((1,) * racks),
        topics=TopicPlan(Span(topics, topics), (100,), ((3, 1),)),
        min_insync_replicas=2,
    )
    return Fleet.of(Recipe(name="risks", cluster_count=1, seed=1, shapes=(shape,)))


def view(fleet: Fleet, number: int, placer: str) -> ClusterView:
    cluster = make_cluster(fleet, number)
    return view_of(cluster, place_cluster(cluster, placer, seed=fleet.recipe.seed), "benchmark")


def cpu_s(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def draw_costs(small: int) -> tuple[float, float]:
    """Return CPU seconds of 10^11 partition-draws: drawing alone, and with making and placing the clusters."""
    fleet = fleet_of(100, 100, 3)
    views = [view(fleet, number, "striped") for number in range(CLUSTERS // small)]
    counted = sum(one.draw_count for one in availability(views[0], Rates(), draw_count=DRAWS, seed=1))
    draws = len(views) * 10_000 * counted
    alone = cpu_s(lambda: [availability(each, Rates(), draw_count=DRAWS, seed=1) for each in views])
    whole = cpu_s(
        lambda: [
            availability(view(fleet, number, "striped"), Rates(), draw_count=DRAWS, seed=1)
            for number in range(len(views))
        ]
    )
    return 1e11 * alone / draws, 1e11 * whole / draws


def print_availability(small: int) -> None:
    for name, taken in zip(("drawing alone", "with making and placing"), draw_costs(small), strict=True):
        print(f"{name:<24} {1e2 / taken:6.2f} G partition-draws per CPU s, 10^11 in {taken:5.1f} s")


def year_rates(small: int) -> dict[str, float]:
    """Return cluster-years per CPU second by placer."""
    fleet = fleet_of(1_000, 10_000 // small, 3)
    rates = {}
    for placer in ("striped", "copyset"):
        one = view(fleet, 0, placer)
        rates[placer] = 100_000 / cpu_s(functools.partial(durability, one, Rates(), Years(years=100_000), seed=1))
    return rates


def print_years(small: int) -> None:
    for placer, rate in year_rates(small).items():
        print(f"{placer:<10} {rate:10,.0f} cluster-years per CPU s")


def print_placers(small: int) -> None:
    rates = attrs.evolve(Rates(), power_cut_lost_percent=1.0)
    print("| 1,000 brokers | placer | copysets | scatter width | one takes over | then leads | a cut loses data "
          "| independent losses a year |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for racks in (0, 3):
        fleet = fleet_of(1_000, 10_000 // small, racks)
        for placer in ("striped", "classic", "copyset"):
            one = view(fleet, 0, placer)
            (found,) = durability(one, rates, Years(years=100_000), seed=1)
            cut = availability(one, rates, draw_count=8 * DRAWS, seed=1)[-1].states["lost"]
            sets = found.copysets
            print(
                f"| {f'{racks} racks' if racks else 'no racks'} | {placer} | {sets.copyset_count:,} "
                f"| {sets.scatter_width_mean:.0f} | {100 * (found.takeover_share_mean or 0):.0f} % "
                f"| {found.leaders_after_loss_over_mean:.2f} x | {100 * cut.chance:.2g} % "
                f"| {found.losses_per_year_independent:.2g} ({found.losses_per_year_closed_form:.2g}) |"
            )


PARTS = {"availability": print_availability, "years": print_years, "placers": print_placers}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure draws and years, and print the table of placers.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure; all if none is named")
    parser.add_argument("--small", action="store_true", help="a tenth of the sizes")
    asked = parser.parse_args(given)
    for part in asked.parts or PARTS:
        PARTS[part](10 if asked.small else 1)


if __name__ == "__main__":
    main()
