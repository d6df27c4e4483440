"""The request path under load."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from broker.draws import exponential
from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.requests.cli import requests_command
from broker.requests.measures import PHASES, PathReport
from broker.requests.options import (
    METADATA,
    REQUEST_KINDS,
    Load,
    RequestKind,
    RequestPathOptions,
    Waits,
    capacity_per_second,
)
from broker.requests.reactor import RequestPath
from broker.units import DurationMs

OPTIONS = RequestPathOptions()


def played(options: RequestPathOptions = OPTIONS, seed: int = 1, **named: Any) -> PathReport:
    load = Load(**{"duration_ms": DurationMs(500), "connection_count": 500, **named})
    return RequestPath(options, load, SplitMix64(seed)).run()


def at(percent: int, kinds: tuple[RequestKind, ...] = REQUEST_KINDS) -> int:
    return capacity_per_second(OPTIONS, kinds) * percent // 100


@pytest.mark.deep
def test_the_run_does_not_depend_on_pythons_hash_seed() -> None:
    program = (
        "from broker.requests.reactor import RequestPath; from broker.requests.options import *\n"
        "from broker.entropy import SplitMix64; from broker.units import DurationMs\n"
        "load = Load(requests_per_second=20000, duration_ms=DurationMs(200))\n"
        "print(RequestPath(RequestPathOptions(), load, SplitMix64(3)).run())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_a_quiet_broker_answers_in_the_time_of_the_work_alone() -> None:
    kind = attrs.evolve(METADATA, read_us=10, handle_us=1, write_us=10)
    report = played(requests_per_second=100, kinds=(kind,))
    assert report.answered_count == report.arrived_count
    assert report.all_kinds.phase("TotalTimeMs").p50_ms <= 0.012
    assert report.request_queue_max <= 1
    assert report.handler_idle_ratio > 0.999


def test_the_queue_is_the_one_of_queueing_theory_where_that_has_an_answer() -> None:
    # One handler, Poisson arrivals, exponential work: at load 1/2 half a request waits on average (M/M/1).
    kind = RequestKind(name="Metadata", handle_us=1000, read_us=1, write_us=1)
    options = RequestPathOptions(io_thread_count=1)
    report = played(
        options, requests_per_second=500, kinds=(kind,), duration_ms=DurationMs(20_000), connection_count=5000
    )
    assert report.request_queue_mean == pytest.approx(0.5, rel=0.1)


def test_one_slow_handler_is_felt_in_the_tail_and_not_in_the_median() -> None:
    short = {"requests_per_second": at(60), "duration_ms": DurationMs(200)}
    healthy = played(**short)
    sick = played(**short, slow_handler_count=1, slow_factor=100)
    assert sick.all_kinds.phase("LocalTimeMs").p999_ms > 5 * healthy.all_kinds.phase("LocalTimeMs").p999_ms
    assert sick.all_kinds.phase("LocalTimeMs").p50_ms < 2 * healthy.all_kinds.phase("LocalTimeMs").p50_ms


def test_a_produce_whose_followers_are_too_slow_expires() -> None:
    kind = RequestKind(name="Produce", waits=Waits.COMMIT, wait_ms_max=DurationMs(20))
    report = played(requests_per_second=200, kinds=(kind,), replication_us=60_000_000)
    assert report.all_kinds.expired_count > 50
    assert 19 <= report.all_kinds.phase("RemoteTimeMs").p50_ms <= 20


def test_a_fetch_without_news_is_answered_when_its_time_is_over() -> None:
    kind = RequestKind(name="Fetch", waits=Waits.DATA, wait_ms_max=DurationMs(30))
    report = played(requests_per_second=500, kinds=(kind,), connection_count=2000)
    assert report.all_kinds.expired_count == report.answered_count > 100
    assert report.purgatory_max > 5


def test_draws_have_the_mean_and_the_tail_of_an_exponential_distribution() -> None:
    entropy = SplitMix64(11)
    times = [exponential(entropy, 1000) for _ in range(20_000)]
    assert sum(times) / len(times) == pytest.approx(1000, rel=0.03)
    assert sum(time > 3000 for time in times) / len(times) == pytest.approx(0.0498, rel=0.1)
    assert sum(time < 100 for time in times) / len(times) == pytest.approx(0.0952, rel=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RequestPathOptions(io_thread_count=0), r"^io_thread_count is 0; at least 1 is allowed$"),
        (lambda: Load(requests_per_second=0), r"^requests_per_second is 0; at least 1 is allowed$"),
        (lambda: Load(requests_per_second=1, kinds=()), r"^a load needs at least one kind of request$"),
        (lambda: RequestKind(name="x", read_us=0), r"^read_us of request kind 'x' is 0; at least 1 is allowed$"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_the_command_prints_a_column_for_each_load() -> None:
    result = CliRunner().invoke(
        requests_command, ["--load", "10", "--load", "20", "--seconds", "1"], standalone_mode=False
    )
    assert result.exception is None
    heading, *_ = (line for line in result.output.splitlines() if "/s" in line)
    assert ("4,923/s" in heading, "9,846/s" in heading) == (True, True)
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in result.output.splitlines() if "│" in line}
    assert [cell.strip() for cell in rows["expired"]] == ["0", "0"]
    assert [float(cell.strip().rstrip("%")) for cell in rows["handlers idle"]] == pytest.approx([90, 80], abs=3)


def test_the_command_prints_json() -> None:
    result = CliRunner().invoke(requests_command, ["--rate", "500", "--seconds", "1", "--json"])
    (report,) = json.loads(result.output)
    assert report["requests_per_second"] == 500
    assert set(report["all_kinds"]["phases"]) == set(PHASES)
