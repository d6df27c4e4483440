"""Compute how often independent losses of brokers lose a copyset: closed forms that need no draw.

What it decides: two figures for one set of f brokers, each lost lambda times a year and replaced in 1/mu years.

    mean_years_to_loss   birth-death chain from f good brokers to none, with a transition f - i -> f - i - 1 of rate
                         (f - i) lambda and back of rate i mu; the expected years until none is left
    losses_per_year      how often all f are lost at the same time, where the set begins anew after a loss: f brokers
                         that alternate between good and lost, independent of each other; it holds for any distribution
                         of the times

For lambda much smaller than mu, the first is one over the second.

Example: three brokers, lost every ten years and replaced in a day:
    >>> rates = dict(loss_rate=0.1, replace_years=1 / 365.25)
    >>> f"{mean_years_to_loss(3, **rates):.4g} {1 / losses_per_year(3, **rates):.4g}"
    '4.451e+07 4.451e+07'

Left out: copysets that share brokers: their rates add up, as long as losses are rare.

Source: Angus, On computing MTBF for a k-out-of-n:G repairable system, IEEE Trans. Reliability 37(3), 1988; Cox,
Renewal Theory, 1962.
"""

from __future__ import annotations

from broker.errors import UsageError


def mean_years_to_loss(factor: int, *, loss_rate: float, replace_years: float) -> float:
    """Return the expected years until all of `factor` brokers are lost at once, from all good; infinite without losses.

    The expected time to go from i lost to i + 1 is t(i) = (1 + i mu t(i - 1)) / ((f - i) lambda).
    """
    _check(factor, loss_rate, replace_years)
    if not loss_rate:
        return float("inf")
    if not replace_years:
        return 1 / loss_rate if factor == 1 else float("inf")
    step = total = 1 / (factor * loss_rate)
    for lost in range(1, factor):
        step = (1 + lost / replace_years * step) / ((factor - lost) * loss_rate)
        total += step
    return total


def losses_per_year(factor: int, *, loss_rate: float, replace_years: float) -> float:
    """Return how often a year all of `factor` brokers are lost at the same time, each beginning anew when replaced."""
    _check(factor, loss_rate, replace_years)
    cycle = 1 + loss_rate * replace_years
    return factor * (loss_rate / cycle) * (loss_rate * replace_years / cycle) ** (factor - 1)


def _check(factor: int, loss_rate: float, replace_years: float) -> None:
    if factor < 1 or loss_rate < 0 or replace_years < 0:
        raise UsageError(
            f"factor {factor}, loss_rate {loss_rate:g}, replace_years {replace_years:g}: allowed are a factor of 1 or "
            "more, and no negative number"
        )
