"""Which rules of replication product code asks, and which of them the simulated cluster's own roles ask.

A rule is a public function of a module of `replication.rules`. It is in use where a module outside its own imports it
by name, or reads it from its module (`controller_events.fenced`), and names it in its code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from tests.architecture.house import Module

RULES: Final = "replication.rules"


@attrs.frozen(order=True)
class Rule:
    """A public function of a module of `replication.rules`."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def rules_of(modules: Iterable[Module]) -> frozenset[Rule]:
    """Return every public function of `replication.rules`."""
    return frozenset(
        Rule(module.name, node.name)
        for module in modules
        if module.name.startswith(f"{RULES}.")
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    )


def asked_by(module: Module) -> frozenset[Rule]:
    """Return the functions of other modules of `replication.rules` that `module` names in its code."""
    return frozenset(rule for rule in _named_in(module.tree, _imported(module)) if rule.module != module.name)


def reached_from(modules: Iterable[Module], starts: tuple[str, ...]) -> frozenset[Rule]:
    """Return the rules that modules named `starts…` ask, and the rules that those rules ask in turn."""
    by_name = {module.name: module for module in modules}
    due = [rule for name, module in by_name.items() if name.startswith(starts) for rule in asked_by(module)]
    found: set[Rule] = set()
    while due:
        rule = due.pop()
        if rule not in found and rule.module in by_name:
            found.add(rule)
            due.extend(_asked_by_function(by_name[rule.module], rule.name))
    return frozenset(found)


def _asked_by_function(module: Module, name: str) -> Iterator[Rule]:
    """Yield the rules that a function or class asks, through the functions and classes of its own module, too."""
    imported = _imported(module)
    own = {node.name: node for node in module.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    due, seen = [name], set()
    while due:
        current = due.pop()
        if current in seen or current not in own:
            continue
        seen.add(current)
        yield from _named_in(own[current], imported)
        for node in ast.walk(own[current]):
            if isinstance(node, ast.Name) and node.id in own:
                yield Rule(module.name, node.id)
                due.append(node.id)


def _imported(module: Module) -> dict[str, str]:
    """Return what a module imports from `replication.rules`: the local name, and the dotted name that it stands for."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and f"{node.module}.".startswith(f"{RULES}.")
        for alias in node.names
    }


def _named_in(tree: ast.AST, imported: dict[str, str]) -> Iterator[Rule]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in imported:
            owner, _, name = imported[node.id].rpartition(".")
            if owner != RULES:
                yield Rule(owner, name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield Rule(imported[node.value.id], node.attr)
