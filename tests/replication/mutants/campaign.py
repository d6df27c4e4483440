"""Run simulations of every shape for some CPU seconds, and say what the first broken one broke.

What it decides: the shapes, taken in turn, each with the next seed; runs are short, so that all shapes come early. A
run is noticed that breaks an invariant, loses what its settings do not allow, or ends in an exception of any kind.

Constraints: the campaign knows nothing of the mutants, and compares with no other run.

How: clusters are drawn by every preset there is, with groups, with retention, with ZooKeeper and by the rules of former
releases; between them single parts live alone, each beside a reference: logs, groups, members, consumers (`lone_…`).

Source: ours.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs

from broker.units import DurationMs
from replication.groups import GroupsExtension, with_groups
from replication.rules.switches import CURRENT, Truncation, rules_of
from replication.simulation import Extension, Options, Simulation, harsh, quiet, swarm, varied, with_retention
from tests.replication.mutants.kafka_answers import controller_noticed, program_noticed
from tests.replication.mutants.lone_appends import appends_noticed
from tests.replication.mutants.lone_brokers import broker_noticed
from tests.replication.mutants.lone_classic import classic_noticed
from tests.replication.mutants.lone_clients import client_noticed
from tests.replication.mutants.lone_commits import commits_noticed
from tests.replication.mutants.lone_connections import connections_noticed
from tests.replication.mutants.lone_consumers import consumers_noticed
from tests.replication.mutants.lone_controllers import decisions_noticed
from tests.replication.mutants.lone_epochs import epochs_noticed
from tests.replication.mutants.lone_groups import lone_group_noticed, named_group_noticed
from tests.replication.mutants.lone_herds import herds_noticed
from tests.replication.mutants.lone_leaders import leader_noticed
from tests.replication.mutants.lone_logs import log_noticed
from tests.replication.mutants.lone_members import members_noticed
from tests.replication.mutants.lone_offsets import offsets_noticed
from tests.replication.mutants.lone_power import power_noticed
from tests.replication.mutants.lone_processes import processes_noticed
from tests.replication.mutants.lone_reads import reads_noticed
from tests.replication.mutants.lone_rebuilds import rebuilds_noticed
from tests.replication.mutants.lone_recovery import recovery_noticed
from tests.replication.mutants.lone_replicas import replica_noticed
from tests.replication.mutants.lone_replies import replies_noticed
from tests.replication.mutants.lone_retention import retention_noticed
from tests.replication.mutants.lone_services import service_noticed
from tests.replication.mutants.lone_shards import shards_noticed
from tests.replication.mutants.lone_truncations import truncation_noticed
from tests.replication.mutants.prompt import prompt_noticed
from tests.replication.mutants.until_noticed import Check, until_noticed
from tests.replication.mutants.view_checks import view_noticed

MINUTE: Final = DurationMs(60_000)
LOOKS: Final = 5
"""How often a run under way is asked for the view of its partitions."""
FORMER: Final = ("3.9", "3.7", "4.0")
OF_ZOOKEEPER: Final = ("3.5", "3.2")
_ASKING: Final = attrs.evolve(CURRENT, truncation=Truncation.BY_COMMON_EPOCH)
"""The rules of today, but a follower asks where epochs end before it fetches, as up to 2.7."""


@attrs.frozen
class Shape:
    """Hold how a run is drawn from a seed: its options, and what joins it."""

    options: Callable[[int], Options]
    extension: Callable[[Options], Extension | None] = lambda options: None

    def noticed(self, seed: int) -> str:
        """Return what one run noticed, "" if nothing."""
        options = self.options(seed)
        simulation = Simulation(options, extension=self.extension(options))
        for look in range(LOOKS):
            simulation.run_until(options.duration_ms * (look + 1) // LOOKS)
            told = view_noticed(simulation)
            if told:
                return told
        outcome = simulation.finish()
        return str(outcome.findings[0]) if outcome.is_broken else ""


def _groups(options: Options) -> Extension:
    return GroupsExtension.drawn(options, 2)


def _group_options(seed: int) -> Options:
    """Return options of any preset with groups; in one of four runs the logs that they read are also cut."""
    options = (swarm, harsh, varied)[seed % 3](seed, MINUTE)
    return with_groups(with_retention(options) if seed % 4 == 0 else options)


def _with_zookeeper(seed: int) -> Options:
    options = swarm(seed, MINUTE, rules_of(OF_ZOOKEEPER[seed % len(OF_ZOOKEEPER)]))
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, has_zookeeper=True))


CLUSTERS: Final[Mapping[str, Shape]] = MappingProxyType(
    {
        "swarm": Shape(lambda seed: swarm(seed, MINUTE)),
        "varied": Shape(lambda seed: varied(seed, MINUTE)),
        "groups": Shape(_group_options, _groups),
        "harsh": Shape(lambda seed: harsh(seed, MINUTE)),
        "retention": Shape(lambda seed: with_retention(varied(seed, MINUTE))),
        "zookeeper": Shape(_with_zookeeper),
        "former": Shape(lambda seed: swarm(seed, MINUTE, rules_of(FORMER[seed % len(FORMER)]))),
        "asking": Shape(lambda seed: swarm(seed, MINUTE, _ASKING)),
        "quiet": Shape(lambda seed: quiet(seed, MINUTE)),
    }
)
ALONE: Final[Mapping[str, Callable[[int], str]]] = MappingProxyType(
    {
        "prompt": prompt_noticed,
        "broker": broker_noticed,
        "log": log_noticed,
        "appends": appends_noticed,
        "group": lone_group_noticed,
        "named": named_group_noticed,
        "herd": herds_noticed,
        "controller": controller_noticed,
        "program": program_noticed,
        "recovery": recovery_noticed,
        "decisions": decisions_noticed,
        "client": client_noticed,
        "connections": connections_noticed,
        "commits": commits_noticed,
        "members": members_noticed,
        "processes": processes_noticed,
        "offsets": offsets_noticed,
        "consumers": consumers_noticed,
        "classic": classic_noticed,
        "leader": leader_noticed,
        "epochs": epochs_noticed,
        "limits": retention_noticed,
        "power": power_noticed,
        "reads": reads_noticed,
        "rebuilds": rebuilds_noticed,
        "replica": replica_noticed,
        "replies": replies_noticed,
        "service": service_noticed,
        "shards": shards_noticed,
        "truncation": truncation_noticed,
    }
)
_ORDER: Final = (
    "swarm leader reads replica broker decisions truncation classic service shards members offsets consumers "
    "replies client connections commits processes controller recovery rebuilds limits power epochs program reads "
    "log prompt herd appends group members replies varied named shards groups service client leader reads replica "
    "decisions broker classic consumers processes recovery rebuilds retention harsh log appends members group "
    "shards zookeeper prompt controller varied replies client offsets groups commits service named former program "
    "connections quiet shards members group appends processes truncation consumers broker asking varied limits "
    "recovery power epochs service replies client classic log named members shards groups swarm"
)
TURN: Final = tuple(_ORDER.split())
"""The shapes in the order in which they come again and again."""


def noticed(shape: str, seed: int) -> str:
    """Return what one run noticed, "" if nothing."""
    return CLUSTERS[shape].noticed(seed) if shape in CLUSTERS else ALONE[shape](seed)


def main(arguments: list[str]) -> int:
    """Run until the CPU seconds are spent or something is noticed; the status is 1 if something is."""
    seconds, first = float(arguments[0]), int(arguments[1])
    seeded = enumerate(itertools.cycle(TURN), start=first)
    return until_noticed(
        (Check(f"{shape} {seed}", partial(noticed, shape, seed)) for seed, shape in seeded), seconds, "runs"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
