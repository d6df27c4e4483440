"""Whose settings count: the caller's, then the environment's, then ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from broker.errors import InputError, UsageError
from spark_analysis.session.archive import write_archive
from spark_analysis.session.masters import chosen_master, connect_address, is_connect, is_submitted, submit_master
from spark_analysis.session.settings import parse_settings, read_defaults, session_options, workers_python
from spark_analysis.session.spark_session import submit_arguments

DEFAULTS = """\
# A comment
spark.executor.memory   3g
spark.executor.cores=2
spark.sql.session.timeZone : Europe/Paris

spark.empty
"""


@pytest.mark.parametrize(
    ("given", "environment", "defaults", "expected"),
    [
        (None, {}, {}, "local[*]"),
        (None, {}, {"spark.master": "yarn"}, "yarn"),
        (None, {"PYSPARK_SUBMIT_ARGS": "--master spark://h:1 pyspark-shell"}, {"spark.master": "yarn"}, "spark://h:1"),
        (None, {"SPARK_REMOTE": "sc://h", "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, {}, "sc://h"),
        ("local[2]", {"SPARK_REMOTE": "sc://h"}, {"spark.master": "yarn"}, "local[2]"),
    ],
)
def test_the_callers_master_comes_first_then_the_environments(
    given: str | None, environment: dict[str, str], defaults: dict[str, str], expected: str
) -> None:
    assert chosen_master(given, environment, defaults) == expected


def test_a_master_of_the_environment_is_checked_too() -> None:
    with pytest.raises(UsageError, match="not 'mesos://h'"):
        chosen_master(None, {"SPARK_REMOTE": "mesos://h"}, {})


@pytest.mark.parametrize(
    ("arguments", "master"),
    [
        ("", None),
        ("pyspark-shell", None),
        ("--master yarn pyspark-shell", "yarn"),
        ("--master=local[2] pyspark-shell", "local[2]"),
        ("--conf spark.ui.enabled=true --conf spark.master=yarn pyspark-shell", "yarn"),
        ("--conf spark.master=yarn --master 'spark://h:1' pyspark-shell", "spark://h:1"),
    ],
)
def test_spark_submits_master_is_found_among_its_arguments(arguments: str, master: str | None) -> None:
    assert submit_master(arguments) == master


def test_an_address_of_connect_has_a_port_and_may_have_parameters() -> None:
    assert connect_address("sc://host") == ("host", 15002)
    assert connect_address("sc://host:1/;use_ssl=true;token=a+b") == ("host", 1)
    assert is_connect("sc://host:1/;use_ssl=true;token=a+b")


def test_a_program_of_spark_submit_is_known_by_its_gateway() -> None:
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({"PYSPARK_SUBMIT_ARGS": "pyspark-shell"})


def test_the_callers_options_stand_behind_those_of_the_environment_where_the_last_counts() -> None:
    found = submit_arguments(
        "--master yarn --conf spark.a=1 pyspark-shell", "local[2]", {"spark.a": "2", "spark.b": "x y"}
    )
    assert (
        found
        == "--master yarn --conf spark.a=1 --master 'local[2]' --conf spark.a=2 --conf 'spark.b=x y' pyspark-shell"
    )


def test_the_defaults_of_the_users_folder_win_over_ours_and_the_callers_over_them(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    defaults = read_defaults({"SPARK_CONF_DIR": str(tmp_path)})
    assert defaults == {
        "spark.executor.memory": "3g",
        "spark.executor.cores": "2",
        "spark.sql.session.timeZone": "Europe/Paris",
        "spark.empty": "",
    }
    options = session_options(tmp_path, "local", {"spark.executor.cores": "1"}, defaults)
    assert options["spark.sql.session.timeZone"] == "Europe/Paris"
    assert (options["spark.executor.memory"], options["spark.executor.cores"]) == ("3g", "1")


def test_without_a_folder_or_a_file_there_are_no_defaults(tmp_path: Path) -> None:
    assert read_defaults({}) == read_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {}


def test_defaults_that_are_no_text_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "spark-defaults.conf"
    path.write_bytes(b"spark.a \xff")
    with pytest.raises(InputError) as caught:
        read_defaults({"SPARK_CONF_DIR": str(tmp_path)})
    assert str(caught.value).startswith(f"{path}: cannot be read: ")


@pytest.mark.parametrize(
    ("master", "settings", "environment", "expected"),
    [
        ("local[2]", {}, {}, sys.executable),
        ("spark://h:1", {}, {}, sys.executable),
        ("spark://h:1", {}, {"PYSPARK_PYTHON": "/opt/python"}, "/opt/python"),
        ("spark://h:1", {"spark.pyspark.python": "./env/bin/python"}, {"PYSPARK_PYTHON": "/o"}, "./env/bin/python"),
        ("spark://h:1", {"spark.archives": "env.tgz#env"}, {}, None),
        ("spark://h:1", {"spark.archives": "env.tgz#env"}, {"PYSPARK_PYTHON": "./env/bin/python"}, "./env/bin/python"),
        ("local[2]", {"spark.archives": "data.zip"}, {}, sys.executable),
    ],
)
def test_the_workers_python_is_forced_only_where_the_user_says_nothing(
    master: str, settings: dict[str, str], environment: dict[str, str], expected: str | None
) -> None:
    assert workers_python(master, settings, environment) == expected


def test_no_python_is_set_beside_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    options = session_options(tmp_path, "spark://h:1", {"spark.archives": "env.tgz#env", "spark.executor.memory": "4g"})
    assert "spark.pyspark.python" not in options
    assert options["spark.executor.memory"] == "4g"


def test_a_setting_given_twice_alike_is_one(tmp_path: Path) -> None:
    assert parse_settings(["spark.a=1=2", "spark.a=1=2"]) == {"spark.a": "1=2"}


def test_equal_packages_are_an_archive_of_one_name_and_equal_bytes(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    first, second = map(write_archive, places)
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
