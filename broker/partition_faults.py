"""Check whether one partition of a dump or metadata log is possible, and return why it is not.

Kafka itself never prints a topic name outside its alphabet, a broker twice in one list, or a leader or an ISR member
that holds no replica. Partition ids stay below `PARTITION_ID_MAX`, ten times the largest clusters known, so that no
number in a file decides how much memory is taken. Source: Kafka 4.3 internals/Topic.validate, PartitionRegistration.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from broker.ids import INT32_MAX, NO_LEADER, TOPIC_NAME_LENGTH_MAX

PARTITION_ID_MAX: Final = 10_000_000
"""Ten times the largest clusters known; refused before memory is taken."""
REPLICATION_FACTOR_MAX: Final = 32_767  # A Java short, as in CreateTopicsRequest.
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
assert TOPIC_NAME_LENGTH_MAX == 249  # The pattern above says it again.


def fault_of_topic_name(name: Any) -> str | None:
    """Return why `name` cannot be a topic name, or None."""
    return _fault_of_text(name) if isinstance(name, str) else f"topic is {_kind(name)}; a topic's name is text"


@functools.lru_cache(maxsize=1 << 12)
def _fault_of_text(name: str) -> str | None:
    if _LEGAL_NAME.fullmatch(name) and name not in (".", ".."):
        return None
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the topic name has {len(name)} characters; at most {TOPIC_NAME_LENGTH_MAX} are allowed"
    return "illegal topic name; allowed are letters, digits, '.', '_' and '-', but not '.' or '..'"


def fault_of_number(value: Any, what: str, *, high: int = INT32_MAX, low: int = 0) -> str | None:
    """Return why `value` is not a whole number in low..high, or None."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return None
    return f"{what} is {_kind(value)}; allowed are whole numbers from {low} to {high}"


def fault_of_ids(value: Any, what: str) -> str | None:
    """Return why `value` is not a list of distinct broker ids, or None."""
    # The common case first, as a plan may have a million lists.
    plain = isinstance(value, list | tuple) and 0 < len(value) < 100 and set(map(type, value)) == {int}
    if plain and len(set(value)) == len(value) and 0 <= min(value) <= max(value) <= INT32_MAX:
        return None
    if not isinstance(value, list | tuple):
        return f"{what} is {_kind(value)}; it is a list of broker ids"
    if len(value) > REPLICATION_FACTOR_MAX:
        return f"{what} lists {len(value)} brokers; at most {REPLICATION_FACTOR_MAX} are allowed"
    for item in value:
        fault = fault_of_number(item, f"a broker id in {what}")
        if fault:
            return fault
    if len(set(value)) != len(value):
        counts = Counter(value)
        return f"{what} names broker {next(item for item in value if counts[item] > 1)} twice"
    return None


def fault_of_row(
    leader: int | None, replicas: Sequence[int], isr: Sequence[int] | None, *, isr_name: str = "Isr"
) -> str | None:
    """Return why these fields cannot describe one partition, or None; `fault_of_ids` has checked the lists."""
    if not replicas:
        return "the list of replicas is empty"
    if leader is not None and leader != NO_LEADER and leader not in replicas:
        return f"Leader {leader} is no replica ({_listed(replicas)})"
    held = frozenset(replicas)
    stranger = next((item for item in isr or () if item not in held), None)
    if stranger is not None:
        return f"{isr_name} names broker {stranger}, which is no replica ({_listed(replicas)})"
    return None


def _listed(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids[:20])) + (",…" if len(ids) > 20 else "")


def _kind(value: Any) -> str:
    """Return a short description of `value`: numbers as they are, other values by their kind."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number of more than 20 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "a list" if isinstance(value, list | tuple) else "an object"
