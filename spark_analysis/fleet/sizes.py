"""Draw sizes from a distribution, the same bytes on every machine.

Goals, most important first: a draw is a look-up in a table by twelve random bits, so that no platform's exp or log
makes two machines differ; large and skewed sizes follow the distribution.

How: the distribution is cut into 4,096 parts of equal chance, and the quantile at its middle, rounded to six
significant digits and whole bytes, stands for each part. The quantiles are computed once a recipe with Python's decimal
arithmetic, which is correctly rounded everywhere; only the normal quantile itself uses the C library's logarithm, in
the tails, and is rounded to nine digits before use.

    fixed       every size is the median
    lognormal   median · exp(sigma · z), z the normal quantile: at most z = ±3.67
    pareto      median · (2 · (1 - u))^(-1 / alpha): the smallest is median / 2^(1 / alpha)

Example: of a lognormal distribution with median 2 GiB and sigma 1.5, the largest size is about 2 GiB · e^5.5 = 490 GiB,
drawn once in 4,096 times.

Left out: the tails beyond one in 8,192, and measured histograms.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from statistics import NormalDist
from typing import Final

import numpy as np

from broker.cluster import Int64Array
from spark_analysis.fleet.recipe import SizeLaw

PART_COUNT: Final = 4_096
PART_BITS: Final = 12
_EXACT: Final = Context(prec=20, rounding=ROUND_HALF_EVEN)
_SIX_DIGITS: Final = Context(prec=6, rounding=ROUND_HALF_EVEN)


def quantiles(law: SizeLaw) -> Int64Array:
    """Return the sizes in bytes of the 4,096 equally likely parts of the distribution, ascending, int64[4096]."""
    return np.array([_quantile(law, 2 * part + 1) for part in range(PART_COUNT)], dtype=np.int64)


def _quantile(law: SizeLaw, odd: int) -> int:
    """Return the size at chance odd / 8192."""
    median = Decimal(law.median_bytes)
    if law.law == "fixed":
        return law.median_bytes
    if law.law == "lognormal":
        z = Decimal(f"{NormalDist().inv_cdf(odd / (2 * PART_COUNT)):.9f}")
        factor = _EXACT.exp(_EXACT.multiply(Decimal(str(law.spread)), z))
    else:
        left = _EXACT.divide(Decimal(2 * PART_COUNT - odd), Decimal(PART_COUNT))
        factor = _EXACT.power(left, _EXACT.divide(Decimal(-1), Decimal(str(law.spread))))
    return int(_SIX_DIGITS.multiply(median, factor).to_integral_value(ROUND_HALF_EVEN))
