"""Read a recipe's TOML: accept known keys with values in their bounds, or name the key that is wrong.

What it decides: the keys of a recipe:

    [fleet]
    name = "three zones, uneven"    # shown in the report
    clusters = 500                  # 1 to 1,000,000
    seed = 42                       # 0 to 2^63 - 1; 0 when left out

    [[shape]]                       # one or more
    name = "uneven"                 # "shape 1", "shape 2", … when left out
    weight = 3                      # how often the shape is drawn; 1 when left out
    brokers = { min = 6, max = 60 } # or one number
    racks = { sizes = [4, 4, 2] }   # shares of the brokers; or { count = 3 }, or "none"; unracked = 0.1 leaves some out
    fenced = 0.02                   # share of the brokers; 0 when left out
    placer = ["classic", "striped"] # each cluster is placed by each; names of `brokerside.placers` entry points
    topics = { count = { min = 50, max = 400 }, partitions = [1, 3, 6], factor = { "2" = 1, "3" = 9 } }
    bytes = { law = "lognormal", median = "2 GiB", sigma = 1.5 }  # or fixed (size), or pareto (median, alpha)
    growth = { topics = 0.1, times = 2 }
    min_insync_replicas = 2         # 1 when left out, as in Kafka

Constraints: no key is passed over in silence. A wrong recipe is an InputError whose text names the key's path, what is
allowed and the value found.

Left out: includes, defaults shared between shapes, and expressions; a recipe is short.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from broker.errors import InputError, UsageError
from broker.units import parse_size
from spark_analysis.fleet.recipe import (
    BROKER_COUNT_MAX,
    CLUSTER_COUNT_MAX,
    CLUSTER_PARTITION_COUNT_MAX,
    FACTOR_MAX,
    GROWTH_TIMES_MAX,
    RACK_COUNT_MAX,
    SEED_MAX,
    TOPIC_COUNT_MAX,
    WEIGHT_MAX,
    Growth,
    RackPlan,
    Recipe,
    Shape,
    SizeLaw,
    Span,
    TopicPlan,
)
from spark_analysis.sources.files import read_small_file

RECIPE_SIZE_BYTES_MAX: Final = 1_048_576
SHAPE_COUNT_MAX: Final = 100
LIST_LENGTH_MAX: Final = 1_000
NAME_LENGTH_MAX: Final = 200
SIGMA_MAX: Final = 5.0
ALPHA_MIN: Final = 0.5
SIZE_MEDIAN_BYTES_MAX: Final = 2**50  # With the widest spread allowed, a cluster's bytes still fit a long.


@attrs.frozen
class _Section:
    """One TOML table being read; `path` leads to it from the top of the file."""

    values: Mapping[str, Any]
    path: str
    source: str

    def refuse(self, key: str, allowed: str) -> NoReturn:
        where = f"{self.path}.{key}" if self.path else key
        if key in self.values:
            raise InputError(f"{where} must be {allowed}", source=self.source, value=str(self.values[key]))
        raise InputError(f"{where} is missing; it must be {allowed}", source=self.source)

    def known(self, *keys: str) -> _Section:
        """Return this section; refuse a key that is not one of `keys`."""
        for key in self.values:
            if key not in keys:
                where = f" of {self.path}" if self.path else ""
                raise InputError(f"unknown key{where}; known are {', '.join(keys)}", source=self.source, value=key)
        return self

    def section(self, key: str, allowed: str) -> _Section:
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            self.refuse(key, allowed)
        return _Section(value, f"{self.path}.{key}" if self.path else key, self.source)

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(key, f"a whole number from {low} to {high}")
        return value

    def share(self, key: str, default: float | None = None) -> float:
        return self.number(key, 0.0, 1.0, default)

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(key, f"a number from {low:g} to {high:g}")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH_MAX:
            self.refuse(key, f"a text of 1 to {NAME_LENGTH_MAX} characters")
        return value

    def span(self, key: str, low: int, high: int) -> Span:
        if not isinstance(self.values.get(key), Mapping):
            allowed = f"a whole number from {low} to {high}, or {{ min, max }} of such"
            value = self.values.get(key)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                self.refuse(key, allowed)
            return Span(value, value)
        inner = self.section(key, "").known("min", "max")
        least = inner.whole("min", low, high)
        return Span(least, inner.whole("max", least, high))

    def wholes(self, key: str, low: int, high: int) -> tuple[int, ...]:
        value = self.values.get(key)
        items = value if isinstance(value, list) else [value]
        good = all(isinstance(item, int) and not isinstance(item, bool) and low <= item <= high for item in items)
        if not good or not 0 < len(items) <= LIST_LENGTH_MAX:
            self.refuse(key, f"a whole number from {low} to {high}, or a list of up to {LIST_LENGTH_MAX}")
        return tuple(items)

    def texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.values.get(key, list(default))
        items = value if isinstance(value, list) else [value]
        good = all(isinstance(item, str) and 0 < len(item) <= NAME_LENGTH_MAX for item in items)
        if not good or not 0 < len(items) <= LIST_LENGTH_MAX or len(set(items)) != len(items):
            self.refuse(key, "a name, or a list of different names")
        return tuple(items)


def parse_recipe(text: str, *, source: str) -> Recipe:
    """Return the recipe in the TOML `text`; raise InputError, which names the key, for a text that is no recipe."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", source=source) from None
    except RecursionError:
        raise InputError("not a recipe: it is nested thousands of levels deep", source=source) from None
    except ValueError:  # Python reads numbers of up to 4,300 digits.
        raise InputError("not a recipe: a number has thousands of digits", source=source) from None
    top = _Section(document, "", source).known("fleet", "shape")
    fleet = top.section("fleet", "a table: [fleet]").known("name", "clusters", "seed")
    shapes = document.get("shape")
    if not isinstance(shapes, list) or not 0 < len(shapes) <= SHAPE_COUNT_MAX:
        raise InputError(f"a recipe needs 1 to {SHAPE_COUNT_MAX} tables [[shape]]", source=source)
    sections = [_Section(shape, f"shape[{number}]", source) for number, shape in enumerate(shapes, start=1)]
    try:
        return Recipe(
            name=fleet.text("name"),
            cluster_count=fleet.whole("clusters", 1, CLUSTER_COUNT_MAX),
            seed=fleet.whole("seed", 0, SEED_MAX, default=0),
            shapes=tuple(_shape(section, number) for number, section in enumerate(sections, start=1)),
            source=source,
            text=text,
        )
    except InputError:
        raise
    except UsageError as error:
        raise InputError(str(error), source=source) from None


def _shape(shape: _Section, number: int) -> Shape:
    shape.known(
        "name", "weight", "brokers", "racks", "fenced", "placer", "topics", "bytes", "growth", "min_insync_replicas"
    )
    return Shape(
        name=shape.text("name", default=f"shape {number}"),
        weight=shape.whole("weight", 1, WEIGHT_MAX, default=1),
        brokers=shape.span("brokers", 1, BROKER_COUNT_MAX),
        racks=_racks(shape),
        fenced=shape.share("fenced", default=0.0),
        placers=shape.texts("placer", default=("striped",)),
        topics=_topics(shape),
        sizes=_sizes(shape) if "bytes" in shape.values else None,
        growth=_growth(shape) if "growth" in shape.values else None,
        min_insync_replicas=shape.whole("min_insync_replicas", 1, FACTOR_MAX, default=1),
    )


def _racks(shape: _Section) -> RackPlan:
    if shape.values.get("racks", "none") == "none":
        return RackPlan()
    racks = shape.section("racks", '"none", { count = N } or { sizes = [shares] }').known("count", "sizes", "unracked")
    if ("count" in racks.values) == ("sizes" in racks.values):
        raise InputError(f"{racks.path} needs either count or sizes", source=racks.source, value=str(racks.values))
    unracked = racks.share("unracked", default=0.0)
    if "count" in racks.values:
        return RackPlan((1,) * racks.whole("count", 1, RACK_COUNT_MAX), unracked)
    sizes = racks.wholes("sizes", 1, WEIGHT_MAX)
    if len(sizes) > RACK_COUNT_MAX:
        racks.refuse("sizes", f"shares of at most {RACK_COUNT_MAX} racks")
    return RackPlan(sizes, unracked)


def _topics(shape: _Section) -> TopicPlan:
    topics = shape.section("topics", "{ count, partitions, factor }").known("count", "partitions", "factor")
    return TopicPlan(
        count=topics.span("count", 0, TOPIC_COUNT_MAX),
        partitions=topics.wholes("partitions", 1, CLUSTER_PARTITION_COUNT_MAX),
        factors=_factors(topics),
    )


def _factors(topics: _Section) -> tuple[tuple[int, int], ...]:
    if not isinstance(topics.values.get("factor"), Mapping):
        return ((topics.whole("factor", 1, FACTOR_MAX), 1),)
    weights = topics.section("factor", "")
    for key in weights.values:
        if not (key.isascii() and key.isdigit() and str(int(key)) == key and 1 <= int(key) <= FACTOR_MAX):
            raise InputError(
                f"a key of {weights.path} must be a factor from 1 to {FACTOR_MAX}", source=weights.source, value=key
            )
    if not weights.values:
        topics.refuse("factor", "a factor, or a table of factors with their weights")
    return tuple((int(key), weights.whole(key, 1, WEIGHT_MAX)) for key in sorted(weights.values, key=int))


def _sizes(shape: _Section) -> SizeLaw:
    law = shape.section("bytes", "{ law, … }")
    name = law.values.get("law")
    if name == "fixed":
        return SizeLaw("fixed", _size(law.known("law", "size"), "size"))
    if name == "lognormal":
        law.known("law", "median", "sigma")
        return SizeLaw("lognormal", _size(law, "median"), law.number("sigma", 0.0, SIGMA_MAX))
    if name == "pareto":
        law.known("law", "median", "alpha")
        return SizeLaw("pareto", _size(law, "median"), law.number("alpha", ALPHA_MIN, 100.0))
    return law.refuse("law", "fixed, lognormal or pareto")


def _size(law: _Section, key: str) -> int:
    value = law.values.get(key)
    allowed = f'a size such as "2 GiB", at most {SIZE_MEDIAN_BYTES_MAX} bytes'
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str):
        try:
            size = parse_size(value)
        except UsageError:
            law.refuse(key, allowed)
    else:
        law.refuse(key, allowed)
    if not 0 <= size <= SIZE_MEDIAN_BYTES_MAX:
        law.refuse(key, allowed)
    return size


def _growth(shape: _Section) -> Growth:
    growth = shape.section("growth", "{ topics, times }").known("topics", "times")
    return Growth(growth.share("topics"), growth.whole("times", 2, GROWTH_TIMES_MAX))


def list_recipes() -> tuple[str, ...]:
    """Return the names of the recipes that come with the library, sorted."""
    folder = resources.files("spark_analysis") / "recipes"
    return tuple(sorted(entry.name[: -len(".toml")] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_recipe(name_or_path: str) -> Recipe:
    """Return the shipped recipe of this name, or else that of the file at this path; raise InputError if unusable."""
    if name_or_path in list_recipes():
        entry = resources.files("spark_analysis") / "recipes" / f"{name_or_path}.toml"
        return parse_recipe(entry.read_text("utf-8"), source=name_or_path)
    if not Path(name_or_path).suffix:
        raise InputError(
            f"no such recipe; shipped are {', '.join(list_recipes())}, and a file's name ends in .toml",
            value=name_or_path,
        )
    data = read_small_file(name_or_path, size_bytes_max=RECIPE_SIZE_BYTES_MAX)
    try:
        return parse_recipe(data.decode("utf-8"), source=name_or_path)
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", source=name_or_path) from None
