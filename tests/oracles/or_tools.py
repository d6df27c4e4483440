"""The least moves within given bounds, by OR-tools: a linear bound, and that of whole partitions within bands."""

from __future__ import annotations

import numpy as np
from ortools.linear_solver import pywraplp

from placement.planning.problem import Problem, Solution


def least_moves(problem: Problem, bounds: Solution, sizes: np.ndarray | None = None) -> int:
    """Fewest new replicas (or bytes of them) within the bounds of `bounds`, halves of replicas allowed, rounded up."""
    model = pywraplp.Solver.CreateSolver("GLOP")
    partitions, brokers = problem.kind.size, problem.group.size
    held = [[model.NumVar(0, 1, f"{p} on {b}") for b in range(brokers)] for p in range(partitions)]
    new = []
    for p in range(partitions):
        kind = int(problem.kind[p])
        before = set(problem.before[p].tolist())
        for b in range(brokers):
            if kind < 0 or problem.group[b] < 0 or (b not in before and not problem.receives[b]):
                model.Add(held[p][b] == 0)
            elif b not in before:
                new.append(held[p][b] * (1 if sizes is None else int(sizes[p])))
        if kind < 0:
            continue
        model.Add(sum(held[p]) == int(problem.factor[kind]))
        for g in range(problem.room.shape[1]):
            inside = sum(held[p][b] for b in range(brokers) if problem.group[b] == g)
            model.Add(inside >= int(problem.must[kind, g]))
            model.Add(inside <= int(problem.room[kind, g]))
    loads = [sum(held[p][b] for p in range(partitions)) + int(problem.base[b]) for b in range(brokers)]
    for b in np.flatnonzero(problem.live).tolist():
        model.Add(loads[b] >= int(bounds.low[b]))
        model.Add(loads[b] <= int(bounds.high[b]))
    for number, total in enumerate(bounds.totals.tolist()):
        model.Add(sum(loads[b] for b in np.flatnonzero(bounds.block == number).tolist()) == total)
    if problem.topic_low is not None and problem.topic_high is not None:
        for topic in range(problem.topic_low.shape[0]):
            rows = np.flatnonzero((problem.topic == topic) & (problem.kind >= 0)).tolist()
            for b in np.flatnonzero(problem.live).tolist():
                model.Add(sum(held[p][b] for p in rows) >= int(problem.topic_low[topic, b]))
                model.Add(sum(held[p][b] for p in rows) <= int(problem.topic_high[topic, b]))
    model.Minimize(sum(new))
    assert model.Solve() == pywraplp.Solver.OPTIMAL
    return int(np.ceil(model.Objective().Value() - 1e-6))


def least_bytes_between(
    problem: Problem, sizes: np.ndarray, base: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[int, int]:
    """Bytes of new replicas within bands, whole partitions: no placement has fewer, and one has so many."""
    model = pywraplp.Solver.CreateSolver("SCIP")
    model.SetSolverSpecificParametersAsString("limits/nodes = 200")
    partitions, brokers = problem.kind.size, problem.group.size
    held, new = [[model.BoolVar("") for _ in range(brokers)] for _ in range(partitions)], []
    for p in np.flatnonzero(problem.kind >= 0).tolist():
        kind, before = int(problem.kind[p]), set(problem.before[p].tolist())
        for b in range(brokers):
            if problem.group[b] < 0 or (b not in before and not problem.receives[b]):
                model.Add(held[p][b] == 0)
            elif b not in before:
                new.append(held[p][b] * int(sizes[p]))
        model.Add(sum(held[p]) == int(problem.factor[kind]))
        for g in range(problem.room.shape[1]):
            inside = sum(held[p][b] for b in range(brokers) if problem.group[b] == g)
            model.Add(inside >= int(problem.must[kind, g]))
            model.Add(inside <= int(problem.room[kind, g]))
    for b in np.flatnonzero(problem.live).tolist():
        load = sum(held[p][b] * int(sizes[p]) for p in np.flatnonzero(problem.kind >= 0).tolist()) + int(base[b])
        model.Add(load >= int(low[b]))
        model.Add(load <= int(high[b]))
    model.Minimize(sum(new))
    assert model.Solve() in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE)
    return int(np.ceil(model.Objective().BestBound() - 1e-6)), round(model.Objective().Value())
