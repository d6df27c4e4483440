"""A study's runs: as many rows as runs, equal rows however they are made, and a reason where none could be."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from broker.errors import UsageError
from replication import Choice, Elected
from replication.rules.election import Ballot, Election, elect
from replication.rules.switches import Rules
from replication.studies import STUDIES, Parameters, Study, grid, rows_of, summarise
from replication.studies.isr_run import failures_of, run_isr
from replication.studies.study import ratio

TINY = Study(
    name="tiny",
    title="Tiny",
    fixed={"minutes": 0.5, "mttf_minutes": 0.3, "failure": "power", "repair_seconds": 3},
    cells=grid(acks=["all", "1"], min_isr=[1, 4]),
    seeds=2,
)


def elected(election: str) -> Study:
    """Return a study of one run with a policy of one's own."""
    fixed = {"minutes": 1, "mttf_minutes": 0.5, "election": election}
    return Study(name="mine", title="Mine", fixed=fixed, seeds=1, first_seed=1)


def last_in_sync(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Elect the last valid replica instead of the first."""
    valid = [broker for broker in ballot.replicas if ballot.is_valid(broker)]
    return Elected(valid[-1], Choice.IN_SYNC) if valid else elect(ballot, election, rules)


def stranger(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Elect a broker that is no replica."""
    return attrs.evolve(elect(ballot, election, rules), leader=77)


def raising(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Raise."""
    raise ZeroDivisionError("one over nothing")


def exiting(*_: object) -> Elected:
    """Leave the process."""
    raise SystemExit(3)


def test_as_many_rows_come_out_as_runs_go_in_and_impossible_ones_say_why() -> None:
    rows = list(rows_of(TINY, jobs=1))
    assert [(row["cell"], row["seed"]) for row in rows] == [(cell, seed) for cell in range(4) for seed in range(2)]
    assert {(row["status"], row["reason"]) for row in rows if row["cell"] in (1, 3)} == {
        ("refused", "min_isr is 4; allowed are whole numbers from 1 to 3 (factor)")
    }
    assert {row["status"] for row in rows if row["cell"] in (0, 2)} == {"done"}
    cells = summarise(TINY, rows)
    assert [(cell["acks"], cell["min_isr"]) for cell in cells] == [("all", 1), ("all", 4), ("1", 1), ("1", 4)]
    assert [(cell["done_count"], cell["refused_count"]) for cell in cells] == [(2, 0), (0, 2), (2, 0), (0, 2)]


def test_rows_are_equal_from_any_number_of_processes_and_any_order() -> None:
    study = attrs.evolve(TINY, cells=grid(acks=["all", "1"]), seeds=8)
    assert list(rows_of(study, jobs=2)) == list(rows_of(study, jobs=1))


def test_the_same_seed_has_the_same_failures_whatever_the_settings() -> None:
    few, many = Parameters(factor=2, mttf_minutes=1), Parameters(factor=3, mttf_minutes=1, acks="1", min_isr=1)
    assert [fault for fault in failures_of(many, 5) if fault.target < 2] == list(failures_of(few, 5))
    assert failures_of(few, 5) != failures_of(few, 6)


def test_mean_times_to_failure_and_repair_are_those_asked_for() -> None:
    parameters = Parameters(mttf_minutes=2, repair_seconds=30, minutes=20_000)
    faults = failures_of(parameters, 3)
    assert len(faults) == pytest.approx(3 * 20_000 / 2.5, rel=0.03)
    assert sum(fault.duration_ms for fault in faults) / len(faults) == pytest.approx(30_000, rel=0.03)


def test_restarts_take_one_broker_after_the_other() -> None:
    faults = failures_of(Parameters(restarts="controlled", restart_seconds=60, minutes=5), 0)
    assert [(fault.start_ms, fault.kind.name, fault.target) for fault in faults] == [
        (63_000, "STOP", 0),
        (123_000, "STOP", 1),
        (183_000, "STOP", 2),
        (243_000, "STOP", 0),
    ]


def test_a_dead_follower_holds_writes_up_until_its_session_ends() -> None:
    """Broker.session.timeout.ms is 9 s, and the controller looks once a second."""
    quiet = Parameters(minutes=1, partitions=1)
    assert run_isr(quiet, 1)[0].unavailable_ms == 0
    killed = Parameters(minutes=1, partitions=1, restarts="uncontrolled", restart_seconds=40, restart_down_seconds=15)
    assert 8_000 <= run_isr(killed, 1)[0].unavailable_ms <= 11_000
    stopped = attrs.evolve(killed, restarts="controlled")
    assert run_isr(stopped, 1)[0].unavailable_ms == 0


@pytest.mark.deep
def test_acks_one_loses_what_acks_all_keeps() -> None:
    common = Parameters(mttf_minutes=1, failure="disk", minutes=5, min_isr=2, produce_ms=100)
    by_all = [run_isr(common, seed)[0] for seed in range(4)]
    by_one = [run_isr(attrs.evolve(common, acks="1"), seed)[0] for seed in range(4)]
    assert sum(each.acked_all for each in by_all) > 1_000
    assert sum(each.acked_one for each in by_one) > 1_000
    assert (sum(each.lost_one for each in by_all), sum(each.lost_all for each in by_one)) == (0, 0)
    assert sum(each.lost_one for each in by_one) > 0


def test_a_policy_of_one_s_own_elects_the_leaders() -> None:
    own, kafka = elected(f"{__name__}:last_in_sync").row(0), elected("kafka").row(0)
    assert own["status"] == "done"
    assert own["message_count"] != kafka["message_count"]


@pytest.mark.parametrize(
    ("election", "status", "reason"),
    [
        (f"{__name__}:stranger", "failed", "the election policy elects broker 77; the replicas are 0, 1, 2"),
        (f"{__name__}:raising", "failed", "ZeroDivisionError at seed 1, step"),
        (f"{__name__}:exiting", "failed", "SystemExit: 3"),
        (f"{__name__}:nobody", "refused", "is not there; wanted is module:name"),
        ("no.such.module:policy", "refused", "No module named 'no'"),
        ("mine", "refused", "is no policy; wanted is kafka, or module:function"),
    ],
)
def test_a_policy_that_cannot_elect_is_a_row_with_its_reason(election: str, status: str, reason: str) -> None:
    row = elected(election).row(0)
    assert row["status"] == status
    assert reason in row["reason"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fixed": {"min_irs": 1}}, "'min_irs' is no parameter of a study; did you mean 'min_isr'"),
        ({"cells": grid(acks=["most"])}, "acks is 'most'; allowed are all, 1, 0"),
        ({"fixed": {"unclean": "yes"}}, "unclean is 'yes'; wanted is true or false"),
        ({"fixed": {"mttf_minutes": math.nan}}, "mttf_minutes is nan; wanted is a finite number"),
        ({"fixed": {"factor": 1 << 63}}, "factor is a whole number of 19 digits; allowed are -922337203685477"),
        ({"seeds": 2_000_000}, "study s has 2,000,000 runs; allowed are 1,000,000"),
        ({"measures": ("happiness",)}, "study s: 'happiness' is no measure; known are lost_share"),
    ],
)
def test_an_impossible_study_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Study(name="s", title="s", **given)


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_study_runs(name: str) -> None:
    study = STUDIES[name]
    short = attrs.evolve(study, fixed={**study.fixed, "minutes": 0.4}, seeds=1)
    rows = list(rows_of(short, jobs=1))
    assert not [row["reason"] for row in rows if row["status"] == "failed"]
    assert sum(row["status"] == "done" for row in rows) > len(rows) / 2


def test_a_share_is_a_ratio_of_sums_with_an_interval() -> None:
    """By hand: 6 / 60; residuals -1, 0, 1; s = 1; error = 1 * sqrt(3) / 60."""
    found = ratio([1, 2, 3], [20, 20, 20])
    width = 1.96 * math.sqrt(3) / 60
    assert found == {"value": pytest.approx(0.1), "low": pytest.approx(0.1 - width), "high": pytest.approx(0.1 + width)}
    assert ratio([0], [0]) == {"value": None, "low": None, "high": None}
