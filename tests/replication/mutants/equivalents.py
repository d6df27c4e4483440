"""List mutants that change nothing that could be observed, each with the reason.

What it decides: which survivors of a mutation run are no gap. The name is `Mutant.name`: a mutant of other text is
another mutant, and has to be looked at again. Three kinds need no look: arguments of `min` and `max`, as numbers that
are equal are the same; a timer's time and delay, which are added; the first number and the step of a tally.

Source: ours.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.architecture.house import ROOT
from tests.replication.mutants.equivalent.coordinators import COORDINATORS
from tests.replication.mutants.equivalent.logs import LOGS
from tests.replication.mutants.equivalent.members import MEMBERS
from tests.replication.mutants.equivalent.roles import ROLES
from tests.replication.mutants.operators import Mutant

EQUIVALENT: Final[Mapping[str, str]] = MappingProxyType({**COORDINATORS, **MEMBERS, **ROLES, **LOGS})

_TALLIES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "broker/group/service.py": frozenset({"_token"}),
        "broker/group/timers.py": frozenset({"_count"}),
        "broker/group/zookeeper/herd.py": frozenset({"_step_count", "turn"}),
        "replication/groups/client/link.py": frozenset({"_count"}),
        "replication/groups/fetching.py": frozenset({"_question"}),
        "replication/groups/hosted_coordinator.py": frozenset({"_shard_count"}),
        "replication/groups/member.py": frozenset({"session", "_number"}),
        "replication/groups/shard.py": frozenset({"_ticket"}),
        "replication/roles/leader.py": frozenset({"_attempts"}),
        "replication/roles/replica_log.py": frozenset({"version", "cleaning_count"}),
    }
)
"""Attributes whose numbers are only compared with former ones of the same tally, by module: they only have to rise."""


@functools.cache
def _attributes_set(path: str) -> Mapping[int, str]:
    """Return which attribute the statement sets that begins on each line of a module."""
    found = {}
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)]) | ast.AugAssign(ast.Attribute(attr=name), ast.Add()):
                found[node.lineno] = name
    return found


def _is_of_tally(mutant: Mutant) -> bool:
    names = _TALLIES.get(mutant.path, frozenset())
    return mutant.operator == "off by one" and bool(names) and _attributes_set(mutant.path).get(mutant.line) in names


def _is_of_timer(mutant: Mutant) -> bool:
    """Return whether a mutant swaps the time and the delay of a timer."""
    if mutant.operator != "swapped arguments" or not mutant.before.startswith("self._timers.set("):
        return False
    before, after = (ast.parse(text, mode="eval").body for text in (mutant.before, mutant.after))
    assert isinstance(before, ast.Call)
    assert isinstance(after, ast.Call)
    kept = [ast.unparse(each) for each in (before.args[0], before.args[3])]
    return kept == [ast.unparse(each) for each in (after.args[0], after.args[3])]


def reason_of(mutant: Mutant) -> str | None:
    """Return why a mutant changes nothing that could be observed; None for any other."""
    is_symmetric = mutant.operator == "swapped arguments" and mutant.before.startswith(("min(", "max("))
    if is_symmetric and "key=" not in mutant.before:
        return "of numbers the least, or the greatest, is the same in any order"
    if _is_of_timer(mutant):
        return "a timer is due at the sum of its time and its delay"
    if _is_of_tally(mutant):
        return "the numbers of a tally only tell one from another, and rise all the same"
    return EQUIVALENT.get(mutant.name)
