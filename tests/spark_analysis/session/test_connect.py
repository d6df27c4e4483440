"""What is said of an address at which no Spark Connect server can be used; test_clusters.py runs a server."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from spark_analysis.session import connect
from spark_analysis.session.java import SessionError
from tests.spark_analysis.session.shell import free_port


@pytest.fixture(autouse=True)
def _client() -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect's client is missing: pip install 'brokerside[connect]'")


def refusal(url: str, folder: Path) -> str:
    """The sentence with which no session is opened."""
    with pytest.raises(SessionError) as caught, connect.connect_session(url, "test", {}, folder):
        pass
    return str(caught.value)


def test_a_port_where_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    port = free_port()
    said = refusal(f"sc://127.0.0.1:{port}", tmp_path)
    assert said == f"no Spark Connect server can be reached at 127.0.0.1:{port}: connection refused"


@pytest.mark.parametrize("parameters", ["", "/;use_ssl=true"])
def test_somebody_else_who_listens_is_not_waited_for_as_spark_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: str
) -> None:
    # A standalone master takes the connection and never answers; Spark's client tries again for ten minutes.
    monkeypatch.setattr(connect, "REACH_SECONDS_MAX", 1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert refusal(f"sc://127.0.0.1:{port}{parameters}", tmp_path) == (
            f"what listens at 127.0.0.1:{port} is no Spark Connect server, or wants other parameters in its URL: "
            "no gRPC connection within 1 s"
        )
