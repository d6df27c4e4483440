"""List the places of a module at which a small bug can be put in, and put one in.

What it decides: seven kinds of bugs: a comparison changed, a number off by one, a call or an assignment dropped, a
condition negated, an operand of `and` or `or` dropped, two arguments swapped, a branch dropped.

Constraints: a mutant is one change of the text, all else stays as it is. Nothing is changed in what only describes:
annotations, decorators, docstrings, messages of exceptions, asserts, methods that format text, and a module's
constants outside of functions.

Source: ours; the kinds are those of Offutt's sufficient set of mutation operators (1996), and of mutmut.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_DESCRIBING: Final = ("text", "line", "lines", "describe", "described", "explain", "words", "sentence", "told")
_SPECIAL: Final = ("__str__", "__repr__")


@attrs.frozen
class Mutant:
    """Hold one small bug: `path` is the module's, lines count from 1, `before` and `after` are the changed text."""

    path: str
    function: str
    line: int
    column: int
    operator: str
    before: str
    after: str
    start: int
    end: int
    nth: int = 1
    """Which of the mutants of equal text this is, in the order of the text."""

    @property
    def name(self) -> str:
        """Return a name that stays while lines move: the path, the function, the operator and the texts."""
        texts = f"{one_line(self.before)} -> {one_line(self.after)}"
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.path} {self.function} [{self.operator}] {texts}{nth}"

    def applied(self, source: str) -> str:
        """Return the module's text with the bug put in."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of the text."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    for function, node, operator, after in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = source.encode()[start:end].decode()
        if one_line(before) != one_line(after):
            found.append(Mutant(path, function, node.lineno, node.col_offset, operator, before, after, start, end))
    ordered = sorted(set(found), key=lambda mutant: (mutant.start, mutant.end, mutant.operator, mutant.after))
    counts: Counter[str] = Counter()
    numbered: list[Mutant] = []
    for mutant in ordered:
        counts[mutant.name] += 1
        numbered.append(attrs.evolve(mutant, nth=counts[mutant.name]))
    return numbered


_Change: TypeAlias = tuple[ast.expr | ast.stmt, str, str]


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.stmt, str, str]]:
    """Yield each node that can be changed: its function, the node, the operator, the text that takes its place."""
    for function in _functions(tree):
        for statement in function.body:
            if not _is_docstring(statement):
                for node, operator, after in _in(statement):
                    yield function.name, node, operator, after


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods that decide something; functions inside them are part of them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            words = child.name.strip("_").split("_")
            if child.name not in _SPECIAL and not set(words) & set(_DESCRIBING):
                yield child
        elif isinstance(child, ast.ClassDef | ast.If):
            yield from _functions(child)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _in(node: ast.AST) -> Iterator[_Change]:
    """Yield the changes of a node and of all that it holds."""
    if isinstance(node, ast.Assert | ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield from _of(node)
    if isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield test, "negated condition", f"(not ({ast.unparse(test)}))"
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.stmt) and _is_docstring(child)):
                yield from _in(child)


def _of(node: ast.expr | ast.stmt) -> Iterator[_Change]:
    """Yield the changes of one node itself."""
    match node:
        case ast.Compare(ops=[operator]):
            other = _COMPARISONS[type(operator)]()
            yield node, "comparison", f"({ast.unparse(ast.Compare(node.left, [other], node.comparators))})"
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield node, "off by one", str(number + 1)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield node, "dropped call", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "dropped call", "pass"
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, "negated condition", f"(not ({ast.unparse(node.test)}))"
            if not isinstance(node, ast.While):
                yield node.test, "dropped branch", "False"
            if isinstance(node, ast.If) and node.orelse:
                yield node.test, "dropped branch", "True"
        case ast.BoolOp(values=values):
            for left_out in range(len(values)):
                kept = [value for at, value in enumerate(values) if at != left_out]
                text = ast.unparse(kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept))
                yield node, "dropped operand", f"({text})"
        case ast.Call(args=[ast.expr(), ast.expr(), *_] as arguments):
            if not any(isinstance(argument, ast.Starred) for argument in arguments):
                for at in range(len(arguments) - 1):
                    swapped = [*arguments[:at], arguments[at + 1], arguments[at], *arguments[at + 2 :]]
                    yield node, "swapped arguments", ast.unparse(ast.Call(node.func, swapped, node.keywords))
