"""Make the runs of a study, side by side, and go on where a former command stopped.

What it decides: how a run becomes a row: impossible parameters and an exception of a model or a policy are rows with
their reason, so that as many rows come out as runs went in.

Constraints: rows do not depend on the number of processes; they come in the order of the runs. A run's row depends on
its parameters and seed alone, so rows that are known from before are taken as they are.

How: a policy is named as "module:function" and imported where the run is made; from Python a function can be given.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Final

import attrs

from broker.errors import BrokersideError, UsageError
from broker.workers import PROCESS_COST, in_order
from replication.rules.election import ElectionPolicy
from replication.studies.isr_run import run_isr
from replication.studies.parameters import Parameters
from replication.studies.quorum_run import run_quorum
from replication.studies.rows import BROKEN, DONE, FAILED, REFUSED, Row
from replication.studies.study import Run, Study

_RUN_COST: Final = PROCESS_COST // 8
"""Some runs are worth a process of their own."""
Policies = Mapping[str, ElectionPolicy]


def make_run(run: Run, policies: Policies | None = None) -> Row:
    """Make one run and return its row."""
    try:
        parameters = Parameters(**run.parameters)
        policy = policy_named(parameters.election, policies or {})
        if parameters.replication == "quorum" and policy is not None:
            raise UsageError("an election policy of one's own has no part in a quorum, which votes")
    except BrokersideError as error:
        return Row(
            study=run.study,
            cell=run.cell,
            seed=run.seed,
            parameters=dict(run.parameters),
            status=REFUSED,
            reason=str(error),
        )
    row = Row(study=run.study, cell=run.cell, seed=run.seed, parameters=attrs.asdict(parameters), status=DONE)
    try:
        if parameters.replication == "quorum":
            measures, broken = run_quorum(parameters, run.seed)
        else:
            measures, broken = run_isr(parameters, run.seed, policy)
    except (Exception, SystemExit) as error:  # Whatever a model or a policy raises ends its own run.
        return attrs.evolve(row, status=FAILED, reason=f"{type(error).__name__}: {' '.join(str(error).split())}")
    return attrs.evolve(row, status=BROKEN if broken else DONE, reason=broken, measures=measures)


def rows_of(
    study: Study,
    *,
    jobs: int | None = None,
    known: Mapping[tuple[int, int], Row] | None = None,
    policies: Policies | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield the rows of a study in the order of its runs; `known` are rows of a former run, by `Run.key`.

    `jobs` is the number of processes, one a core if None; `advance` is called with 1 for each row. `policies` are
    functions that other processes can import.
    """
    found = dict(known or {})
    missing = [run for run in study.runs() if run.key not in found]
    made = in_order(partial(_work, policies), missing, cost=lambda run: _RUN_COST, jobs=jobs)
    for run in study.runs():
        row = found.pop(run.key, None)
        yield next(made) if row is None else row
        advance(1)


def _work(policies: Policies | None, run: Run, _advance: Callable[[int], None]) -> Row:
    return make_run(run, policies)


def policy_named(name: str, policies: Policies) -> ElectionPolicy | None:
    """Return the policy of a name; None for Kafka's own. Raises UsageError for one that is not there."""
    if name == "kafka":
        return None
    if name in policies:
        return policies[name]
    module, _, function = name.partition(":")
    try:
        found: ElectionPolicy | None = getattr(import_module(module), function, None) if function else None
    except ImportError as error:
        raise UsageError(f"election {name!r}: {error}") from None
    if not callable(found):
        raise UsageError(f"election {name!r} is no policy; wanted is kafka, or module:function")
    return found
