"""No rule of replication serves tests alone, and the explorers ask no rule that the simulated cluster does not ask."""

from __future__ import annotations

import ast
from functools import cache

import replication
from tests.architecture.house import ROOT, Module, modules
from tests.architecture.rules_in_use import RULES, Rule, asked_by, reached_from, rules_of


@cache
def product() -> tuple[Module, ...]:
    """The modules of every package, read once."""
    return tuple(modules(ROOT))


CLUSTER = ("replication.roles", "replication.simulation", "replication.retention", "replication.zookeeper")


def test_every_rule_is_asked_outside_its_module_or_is_public() -> None:
    """A rule that tests alone ask is a second model of Kafka, which nobody runs."""
    asked = frozenset(rule for module in product() for rule in asked_by(module))
    public = frozenset(rule for rule in rules_of(product()) if rule.name in replication.__all__)
    assert sorted(map(str, rules_of(product()) - asked - public)) == []


def test_the_explorers_ask_only_rules_that_the_simulated_cluster_asks() -> None:
    """What a search finds about a rule holds for the simulation only if the simulation decides by the same rule."""
    explored = frozenset(
        rule for module in product() if module.name.startswith("replication.explore.") for rule in asked_by(module)
    )
    functions = frozenset(rule for rule in explored & rules_of(product()) if rule.name not in replication.__all__)
    assert len(functions) >= 20
    assert sorted(map(str, functions - reached_from(product(), CLUSTER))) == []


def module(name: str, text: str) -> Module:
    return Module(f"{name.replace('.', '/')}.py", name, text, ast.parse(text))


def test_a_rule_is_asked_by_name_or_through_its_module_and_not_by_an_import_alone() -> None:
    by_name = module("replication.roles.leader", f"from {RULES}.isr import lagging, shrink\nlagging()")
    through = module("replication.roles.leader", f"from {RULES} import isr\nisr.shrink()")
    assert asked_by(by_name) == {Rule(f"{RULES}.isr", "lagging")}
    assert asked_by(through) == {Rule(f"{RULES}.isr", "shrink")}
    assert asked_by(module(f"{RULES}.isr", "def lagging(): ...\nlagging()")) == frozenset()


def test_a_rule_is_reached_through_the_rules_that_ask_it() -> None:
    small = [
        module("replication.roles.leader", f"from {RULES}.fetch import serve\nserve()"),
        module(
            f"{RULES}.fetch", f"from {RULES}.isr import may_join, other\ndef serve(): _help()\ndef _help(): may_join()"
        ),
        module(f"{RULES}.isr", "def may_join(): ...\ndef other(): ..."),
    ]
    reached = reached_from(small, ("replication.roles",))
    assert {str(rule) for rule in reached} == {f"{RULES}.fetch.serve", f"{RULES}.fetch._help", f"{RULES}.isr.may_join"}
