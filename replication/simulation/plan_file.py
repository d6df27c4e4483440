"""Write a plan of faults as JSON, an object a fault, and read it again.

>>> from replication.simulation import Fault, FaultKind, LeaderOf
>>> print(plan_json((Fault(60_000, FaultKind.KILL, broker=LeaderOf(0), duration_ms=5_000),)))
[{"start_ms": 60000, "kind": "KILL", "broker": {"leader_of": 0}, "duration_ms": 5000}]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from broker.errors import InputError, UsageError
from broker.small_files import read_small
from replication.simulation.fault import Aim, Fault, FollowerOf, LeaderOf
from replication.simulation.options import FaultKind

_SIZE_BYTES_MAX: Final = 10_000_000
_AIMS: Final[Mapping[str, type[Aim]]] = {"leader_of": LeaderOf, "follower_of": FollowerOf}
_FIELDS: Final = ("kind", "start_ms", "broker", "rack", "partition", "target", "duration_ms", "choice", "jump_ms")


def plan_json(plan: Sequence[Fault]) -> str:
    """Return a plan as JSON in one line."""
    return json.dumps([fault_fields(fault) for fault in plan])


def fault_fields(fault: Fault) -> dict[str, Any]:
    """Return the fields of a fault as values of JSON, by the names that users give them."""
    fields: dict[str, Any] = {**fault.fields(), "kind": fault.kind.name}
    if fault.aim is not None:
        name = next(name for name, kind in _AIMS.items() if isinstance(fault.aim, kind))
        fields["broker"] = {name: fault.aim.partition, **({"topic": fault.aim.topic} if fault.aim.topic else {})}
    return fields


def read_plan(path: Path) -> tuple[Fault, ...]:
    """Return the plan in a JSON file; raise InputError naming the fault that is none."""
    try:
        listed = json.loads(read_small(path, size_bytes_max=_SIZE_BYTES_MAX), object_pairs_hook=_object)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no JSON: {error}", source=path.name) from None
    except (RecursionError, ValueError):
        raise InputError("the JSON is nested too deeply or holds a number too long", source=path.name) from None
    except UsageError as error:
        raise InputError(str(error), source=path.name) from None
    if not isinstance(listed, list):
        raise InputError("is no plan; wanted is a list of faults", source=path.name)
    plan = []
    for number, entry in enumerate(listed, 1):
        try:
            plan.append(_read(entry))
        except UsageError as error:
            raise InputError(f"fault {number}: {error}", source=path.name) from None
    return tuple(plan)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object; raise UsageError for one that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise UsageError(f"field {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _read(entry: object) -> Fault:
    if not isinstance(entry, dict):
        raise UsageError(f"{entry!r} is no object")
    fields: dict[str, Any] = dict(entry)
    if unknown := sorted(fields.keys() - {*_FIELDS}):
        raise UsageError(f"field {unknown[0]!r} is not known; allowed are {', '.join(_FIELDS)}")
    name = fields.get("kind")
    if name not in FaultKind.__members__:
        raise UsageError(f"kind {name!r} is not known; allowed are {', '.join(FaultKind.__members__)}")
    fields["kind"] = FaultKind[str(name)]
    if isinstance(fields.get("broker"), dict):
        fields["broker"] = _aim(fields["broker"])
    return Fault(**{"start_ms": None, **fields})


def _aim(given: Mapping[str, Any]) -> Aim:
    names = [name for name in given if name in _AIMS]
    if len(names) != 1 or not given.keys() <= {names[0], "topic"}:
        raise UsageError(f"broker is {dict(given)}; wanted is a number, leader_of or follower_of, and perhaps topic")
    return _AIMS[names[0]](given[names[0]], given.get("topic", ""))
