"""Whose settings count: the caller's, then the environment's, then ours."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from broker.errors import InputError, UsageError
from spark_analysis.session import settings
from spark_analysis.session.archive import write_archive
from spark_analysis.session.settings import (
    chosen_master,
    environment_settings,
    heap_bytes,
    is_connect,
    is_local,
    is_submitted,
    parse_settings,
    session_options,
)

GIB = 1 << 30
DEFAULTS = """\
# A comment
spark.executor.memory   3g
spark.executor.cores=2
spark.sql.session.timeZone : Europe/Paris

spark.empty
"""


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (None, {}, "local[*]"),
        (None, {"PYSPARK_SUBMIT_ARGS": "pyspark-shell"}, "local[*]"),
        (None, {"PYSPARK_SUBMIT_ARGS": "--master spark://h:1 pyspark-shell"}, "spark://h:1"),
        (None, {"PYSPARK_SUBMIT_ARGS": "--master=local[2] pyspark-shell"}, "local[2]"),
        (None, {"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}, "yarn"),
        (None, {"SPARK_REMOTE": "sc://h", "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, "sc://h"),
        ("local[2]", {"SPARK_REMOTE": "sc://h"}, "local[2]"),
        ("sc://h:15002/;token=abc;use_ssl=true", {}, "sc://h:15002/;token=abc;use_ssl=true"),
    ],
)
def test_the_callers_master_comes_first_then_the_environments(
    given: str | None, environment: dict[str, str], expected: str
) -> None:
    assert chosen_master(given, environment, environment_settings(environment)) == expected
    assert is_connect(expected) == expected.startswith("sc:")


@pytest.mark.parametrize(
    "master", ["", "local[]", "local[two]", "mesos://host", "spark://", "sc://", "sc://host:99999", "sc://host/db"]
)
def test_an_unknown_master_is_refused_in_one_sentence(master: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen_master(None, {"SPARK_REMOTE": master}, {})
    assert str(caught.value) == (
        "a Spark master is local, local[N], local[*], local-cluster[N,CORES,MIB], spark://HOST:PORT, "
        f"k8s://URL, yarn or sc://HOST:PORT, not {master!r}"
    )


def test_the_callers_settings_win_over_the_users_folder_and_this_over_ours(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    environment = {
        "SPARK_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.executor.memory=4g pyspark-shell",
    }
    found = environment_settings(environment)
    assert found == {
        "spark.executor.memory": "4g",
        "spark.executor.cores": "2",
        "spark.sql.session.timeZone": "Europe/Paris",
        "spark.empty": "",
    }
    given = {**found, "spark.executor.cores": "1", "spark.driver.extraJavaOptions": "-Xint"}
    options = session_options(tmp_path, "local", given)
    assert {key: options[key] for key in found} == {**found, "spark.executor.cores": "1"}
    rules = f"-Dlog4j2.configurationFile={(tmp_path / 'log4j2.properties').as_uri()}"
    assert options["spark.driver.extraJavaOptions"] == f"{rules} -XX:-UsePerfData -Xint"


def test_settings_of_the_environment_are_none_or_refused_where_they_cannot_be_read(tmp_path: Path) -> None:
    environment = {"SPARK_CONF_DIR": str(tmp_path)}
    assert environment_settings({}) == environment_settings(environment) == {}
    path = tmp_path / "spark-defaults.conf"
    path.write_bytes(b"spark.a \xff")
    with pytest.raises(InputError) as caught:
        environment_settings(environment)
    assert str(caught.value).startswith(f"{path}: cannot be read: ")


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[2]", True), ("local[*]", True), ("local[2,3]", True)]
    + [(master, False) for master in ("local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://https://host")],
)
def test_a_local_master_alone_binds_to_this_machine(tmp_path: Path, master: str, local: bool) -> None:
    assert is_local(master) == local
    assert ("spark.driver.bindAddress" in session_options(tmp_path, master, {})) == local


def test_the_heap_is_a_quarter_of_the_memory_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(settings, "_CGROUP_LIMIT", limit)
    for text, heap in ((f"{2 * GIB}", 1), (f"{6 * GIB}", 1.5), ("max", None)):
        limit.write_text(text)
        assert GIB <= heap_bytes() <= 8 * GIB
        assert heap is None or heap_bytes() == heap * GIB


def test_a_setting_given_twice_alike_is_one_and_a_submitted_program_is_known() -> None:
    assert parse_settings(["spark.a=1=2", "spark.a=1=2"]) == {"spark.a": "1=2"}
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({"PYSPARK_SUBMIT_ARGS": "pyspark-shell"})


def test_equal_packages_are_an_archive_of_one_name_and_equal_bytes(tmp_path: Path) -> None:

    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    first, second = map(write_archive, places)
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())
    names = zipfile.ZipFile(first).namelist()
    assert {name.split("/")[0] for name in names} == {"broker", "log", "placement", "replication", "spark_analysis"}
    assert {"broker/py.typed", "spark_analysis/session/spark_session.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
