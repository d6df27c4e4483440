"""A recipe's TOML: what is taken, and the sentence for everything that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.errors import InputError
from spark_analysis.fleet.reading import list_recipes, load_recipe, parse_recipe
from spark_analysis.fleet.recipe import Growth, RackPlan, SizeLaw, Span, TopicPlan

WHOLE = """
[fleet]
name = "three zones, uneven"
clusters = 500
seed = 42

[[shape]]
weight = 3
brokers = { min = 6, max = 60 }
racks = { sizes = [4, 4, 2], unracked = 0.1 }
fenced = 0.02
placer = ["classic", "striped"]
topics = { count = { min = 50, max = 400 }, partitions = [1, 3, 6, 12, 24, 50], factor = { "2" = 1, "3" = 9 } }
bytes = { law = "lognormal", median = "2 GiB", sigma = 1.5 }
growth = { topics = 0.1, times = 2 }
min_insync_replicas = 2
"""

SMALL = """
[fleet]
name = "small"
clusters = 2
[[shape]]
brokers = 3
topics = { count = 1, partitions = 1, factor = 3 }
"""


def test_a_whole_recipe_is_read_key_by_key() -> None:
    recipe = parse_recipe(WHOLE, source="a.toml")
    (shape,) = recipe.shapes
    assert recipe.text == WHOLE
    assert (recipe.name, recipe.cluster_count, recipe.seed, recipe.source) == ("three zones, uneven", 500, 42, "a.toml")
    assert (shape.name, shape.weight, shape.brokers) == ("shape 1", 3, Span(6, 60))
    assert shape.racks == RackPlan((4, 4, 2), 0.1)
    assert shape.placers == ("classic", "striped")
    assert shape.topics == TopicPlan(Span(50, 400), (1, 3, 6, 12, 24, 50), ((2, 1), (3, 9)))
    assert shape.sizes == SizeLaw("lognormal", 2 * 1024**3, 1.5)
    assert shape.growth == Growth(0.1, 2)
    assert (shape.fenced, shape.min_insync_replicas) == (0.02, 2)


def test_what_is_left_out_has_the_documented_default() -> None:
    recipe = parse_recipe(SMALL, source="a.toml")
    (shape,) = recipe.shapes
    assert (recipe.seed, shape.weight, shape.racks, shape.fenced) == (0, 1, RackPlan(), 0.0)
    assert (shape.placers, shape.sizes, shape.growth, shape.min_insync_replicas) == (("striped",), None, None, 1)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("clusters = 2", "clusters = 0",
         "a.toml: fleet.clusters must be a whole number from 1 to 1000000 (found '0')"),
        ("clusters = 2", "clusters = true",
         "a.toml: fleet.clusters must be a whole number from 1 to 1000000 (found 'True')"),
        ("clusters = 2", "",
         "a.toml: fleet.clusters is missing; it must be a whole number from 1 to 1000000"),
        ("clusters = 2", "clusters = 2\ncluster = 3",
         "a.toml: unknown key of fleet; known are name, clusters, seed (found 'cluster')"),
        ("brokers = 3", "broker = 3",
         "a.toml: unknown key of shape[1]; known are name, weight, brokers, racks, fenced, placer, topics, bytes, "
         "growth, min_insync_replicas (found 'broker')"),
        ("brokers = 3", "brokers = 1000000000000",
         "a.toml: shape[1].brokers must be a whole number from 1 to 5000, or { min, max } of such "
         "(found '1000000000000')"),
        ("brokers = 3", "brokers = { min = 9, max = 4 }",
         "a.toml: shape[1].brokers.max must be a whole number from 9 to 5000 (found '4')"),
        ("brokers = 3", "brokers = 2",
         "a.toml: shape 1: topics of factor 3 need as many brokers; the shape's smallest cluster has 2"),
        ("brokers = 3", "brokers = 3\nracks = { count = 4 }",
         "a.toml: shape 1: 4 racks need as many brokers; the shape's smallest cluster has 3"),
        ("brokers = 3", "brokers = 3\nracks = {}",
         "a.toml: shape[1].racks needs either count or sizes (found '{}')"),
        ("brokers = 3", "brokers = 3\nfenced = 1.5",
         "a.toml: shape[1].fenced must be a number from 0 to 1 (found '1.5')"),
        ("brokers = 3", "brokers = 3\nfenced = nan",
         "a.toml: shape[1].fenced must be a number from 0 to 1 (found 'nan')"),
        ("brokers = 3", "brokers = 3\nplacer = []",
         "a.toml: shape[1].placer must be a name, or a list of different names (found '[]')"),
        ("factor = 3", 'factor = { "x" = 1 }',
         "a.toml: a key of shape[1].topics.factor must be a factor from 1 to 32 (found 'x')"),
        ("count = 1", "count = 1000000, growth = 1",
         "a.toml: unknown key of shape[1].topics; known are count, partitions, factor (found 'growth')"),
        ("count = 1, partitions = 1", "count = 1000000, partitions = 1000000",
         "a.toml: shape 1: a cluster could have 1000000000000 partitions; allowed are 2000000"),
        ("brokers = 3", 'brokers = 3\nbytes = { law = "normal" }',
         "a.toml: shape[1].bytes.law must be fixed, lognormal or pareto (found 'normal')"),
        ("brokers = 3", 'brokers = 3\nbytes = { law = "fixed", size = "2 GB" }',
         "a.toml: shape[1].bytes.size must be a size such as \"2 GiB\", at most 1125899906842624 bytes (found '2 GB')"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_path_and_what_is_allowed(before: str, after: str, sentence: str) -> None:
    assert before in SMALL
    with pytest.raises(InputError) as caught:
        parse_recipe(SMALL.replace(before, after), source="a.toml")
    assert str(caught.value) == sentence


def test_shapes_of_one_name_are_refused() -> None:
    text = SMALL + SMALL[SMALL.index("[[shape]]") :]
    named = text.replace("brokers = 3", 'name = "a"\nbrokers = 3')
    with pytest.raises(InputError, match=r"^a\.toml: shapes need names of their own; found a, a$"):
        parse_recipe(named, source="a.toml")


def test_text_that_is_not_toml_says_where() -> None:
    with pytest.raises(InputError, match=r"^a\.toml: not TOML: .*line 1"):
        parse_recipe("[fleet\n", source="a.toml")


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InputError, match=r"^a\.toml: not a recipe: a number has thousands of digits$"):
        parse_recipe(f"[fleet]\nseed = {'9' * 5_000}\n", source="a.toml")


def test_every_shipped_recipe_loads_and_the_demo_is_among_them() -> None:
    names = list_recipes()
    assert {"demo", "classic-vs-striped", "uneven-racks", "rack-rule", "one-billion"} <= set(names)
    assert [load_recipe(name).source for name in names] == list(names)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(InputError) as caught:
        load_recipe(str(path))
    assert str(caught.value) == f"{path}: cannot be read: no such file or directory"


def test_an_unknown_name_lists_the_shipped_recipes() -> None:
    with pytest.raises(InputError, match=r"^no such recipe; shipped are classic-vs-striped, .* \(found 'dmeo'\)$"):
        load_recipe("dmeo")


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError) as caught:
        load_recipe(str(path))
    assert str(caught.value) == f"{path}: not UTF-8 text"
