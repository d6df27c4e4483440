"""Options of data sources: each refusal is one sentence with what is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.errors import UsageError
from spark_analysis.data_sources.options import MODES, GivenOptions
from spark_analysis.sources.listing import local_path

ALLOWED = ("table", "mode", "min_isr", "recursiveFileLookup")


def given(**options: str) -> GivenOptions:
    return GivenOptions.of("kafka_cluster", options, ALLOWED)


def test_names_and_choices_are_compared_without_case() -> None:
    options = given(MODE="failFast", RecursiveFileLookup="TRUE", Min_ISR="2")
    assert options.choice("mode", MODES) == "FAILFAST"
    assert options.flag("recursiveFileLookup", False) is True
    assert options.number("min_isr", low=1, high=9) == 2
    assert options.number("min_isr", low=2, high=9) == options.number("min_isr", low=1, high=2) == 2


def test_what_is_not_given_is_the_first_choice_or_nothing() -> None:
    assert given().choice("mode", MODES) == "PERMISSIVE"
    assert given().flag("recursiveFileLookup", True) is True
    assert given().number("min_isr", low=1, high=9) is None
    assert given(table="").text("table") is None


def test_one_path_is_in_path_and_several_in_paths_as_spark_sends_them() -> None:
    assert given(path="/a").paths() == ("/a",)
    several = json.dumps(["file:///a b", "file:/c#d%20?", "e/*.txt"])
    assert given(paths=several).paths() == ("/a b", "/c#d%20?", str(Path.cwd() / "e" / "*.txt"))


def read_all(options: dict[str, str]) -> None:
    found = given(**options)
    found.choice("mode", MODES)
    found.flag("recursiveFileLookup", False)
    found.number("min_isr", low=1, high=9)
    found.paths()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tabel": "x"}, f"kafka_cluster has no option 'tabel'; it has {', '.join(ALLOWED)}"),
        ({"mode": "x"}, "option 'mode' of kafka_cluster is 'x'; allowed are PERMISSIVE, DROPMALFORMED, FAILFAST"),
        (
            {"recursiveFileLookup": "1"},
            "option 'recursiveFileLookup' of kafka_cluster is '1'; allowed are true or false",
        ),
        ({"min_isr": "0"}, "option 'min_isr' of kafka_cluster is '0'; allowed are a whole number from 1 to 9"),
        (
            {"min_isr": "9" * 30},
            f"option 'min_isr' of kafka_cluster is '{'9' * 30}'; allowed are a whole number from 1 to 9",
        ),
        ({}, "kafka_cluster needs a path: spark.read.format('kafka_cluster').load(PATH)"),
    ],
)
def test_what_is_not_allowed_is_named(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_all(options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("path", ["s3a://dumps/a.txt", "hdfs:/x", "dbfs:/x", "abfss://c@a.dfs/x", "file://host/x"])
def test_another_file_system_is_refused_with_the_way_to_read_it(path: str) -> None:
    scheme = path.partition(":")[0]
    with pytest.raises(UsageError) as caught:
        local_path(path)
    assert str(caught.value) == (
        f"{path}: {scheme} is no file system that Python opens; dumps there are read by parse.partitions("
        f'spark.read.format("binaryFile").load({path!r})), other files from a folder that every worker has, as a path '
        "or a file:/// URI"
    )
