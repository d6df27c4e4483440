"""Names that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import broker
import broker.cluster
import spark_analysis
import spark_analysis.tables.schemas
from tests.architecture.house import ROOT


@pytest.mark.parametrize("package", [broker, spark_analysis])
def test_every_public_name_is_there(package: object) -> None:
    names: tuple[str, ...] = package.__all__  # type: ignore[attr-defined] # a package, which has it
    assert [name for name in names if not hasattr(package, name)] == []


def test_a_late_name_is_the_object_of_its_module() -> None:
    assert broker.ClusterView is broker.cluster.ClusterView
    assert spark_analysis.TABLES is spark_analysis.tables.schemas.TABLES


def test_a_name_that_is_not_there_is_an_attribute_error_as_python_words_it() -> None:
    with pytest.raises(AttributeError) as caught:
        broker.NoSuchName  # type: ignore[attr-defined] # noqa: B018 - asked for, so that it fails.
    assert str(caught.value) == "module 'broker' has no attribute 'NoSuchName'"


def test_the_words_that_everyone_uses_load_no_numpy() -> None:
    script = "import sys, broker; print('numpy' in sys.modules); broker.ClusterView; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")
