"""What is said of addresses at which no server of Spark's listens, without Spark."""

from __future__ import annotations

import socket

import pytest

from spark_analysis.session.java import SessionError
from spark_analysis.session.masters import standalone_addresses
from spark_analysis.session.reach import reach
from spark_analysis.session.spark_session import spark_session
from tests.spark_analysis.session.shell import free_port


def test_one_master_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        reach("Spark master", [("127.0.0.1", free_port()), ("127.0.0.1", other.getsockname()[1])])


def test_each_address_at_which_nobody_listens_is_named() -> None:
    one, two = free_port(), free_port()
    with pytest.raises(SessionError) as caught:
        reach("Spark master", [("127.0.0.1", one), ("127.0.0.1", two)])
    assert str(caught.value) == (
        f"no Spark master can be reached at 127.0.0.1:{one}: connection refused; 127.0.0.1:{two}: connection refused"
    )


@pytest.mark.parametrize(
    "master", ["local[2]", "yarn", "k8s://https://host:6443", "spark://host", "spark://host:70000"]
)
def test_other_masters_are_left_to_spark(master: str) -> None:
    assert standalone_addresses(master) == []


def test_a_session_on_a_master_that_nobody_runs_is_refused_before_java_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.session.spark_session.SparkContext._active_spark_context", None)
    port = free_port()
    with (
        pytest.raises(SessionError, match=f"no Spark master can be reached at 127.0.0.1:{port}: "),
        spark_session(app_name="test", master=f"spark://127.0.0.1:{port}"),
    ):
        pytest.fail("nobody listens there")
