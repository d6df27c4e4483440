"""Draw what a leader knows of its followers, and compare every rule's answer with what a plain list of facts says.

What it decides: the order of the cases and of the checks: of writes (`leader_writes`) and reads (`leader_reads`).

Constraints: the lists share no code with the rules.

Source: ours; each check names Kafka's class.
"""

from __future__ import annotations

from typing import Final

from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.leader_cases import drawn_case
from tests.replication.mutants.leader_reads import caught_up, deletions, fetches, reads
from tests.replication.mutants.leader_writes import committed, in_sync, proposals, writes

CASES_A_RUN: Final = 60
_STREAM: Final = 23


def leader_noticed(seed: int) -> str:
    """Return the first answer of a run that the facts do not bear out, "" if there is none."""
    draws = Draws(seed, _STREAM)
    for _ in range(CASES_A_RUN):
        case = drawn_case(draws)
        for check in (in_sync, proposals, committed, writes, fetches, caught_up, reads, deletions):
            told = next(check(draws, case), "")
            if told:
                return f"{check.__name__.strip('_')} of {case}: {told}"
    return ""
