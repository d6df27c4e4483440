"""Change functions of loaded modules in place, by giving them other code.

What it decides: a mutant is put into a process that has loaded everything, so that a fork of it judges the mutant
without a start of its own; and which statements a run reaches.

Constraints: what ran when its module was loaded is not run again: a mutant of it seems to change nothing. Compiled
loops are none of these functions.

How: code of the changed text is found by its name and first line, which no change within a function moves.

Source: ours.
"""

from __future__ import annotations

import ast
import builtins
import gc
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Final, TypeAlias

from tests.architecture.house import ROOT
from tests.replication.mutants.operators import Mutant

Place: TypeAlias = tuple[str, int]
"""A statement: the path of its module, and the line on which it begins."""
Functions: TypeAlias = dict[tuple[str, str, int], list[FunctionType]]
"""Functions that exist in a process, by the path of their module, their qualified name and their first line."""
_MARK: Final = "_mutants_reached"


def live_functions(paths: Sequence[str]) -> Functions:
    """Return the functions of these modules that exist in this process, but for those that gc has frozen."""
    wanted = {str(ROOT / path): path for path in paths}
    found: Functions = {}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in wanted:  # isinstance asks dead weak proxies
            code = each.__code__
            key = (wanted[code.co_filename], code.co_qualname, code.co_firstlineno)
            found.setdefault(key, []).append(each)
    return found


def _codes(path: str, tree: ast.Module | str) -> Iterator[CodeType]:
    """Yield the code of a module's text, and all that is within it."""
    waiting = [compile(tree, str(ROOT / path), "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]


def swap(mutant: Mutant, functions: Functions) -> int:
    """Put a mutant into this process; return how many functions have other code now."""
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    before = {(code.co_qualname, code.co_firstlineno): code for code in _codes(mutant.path, source)}
    swapped = 0
    for code in _codes(mutant.path, mutant.applied(source)):
        place = (code.co_qualname, code.co_firstlineno)
        former = before.get(place)
        if former is None or _same(former, code):
            continue
        for function in functions.get((mutant.path, *place), []):
            if function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
                swapped += 1
    return swapped


def _same(one: CodeType, other: CodeType) -> bool:
    return one.co_code == other.co_code and one.co_names == other.co_names and _constants(one) == _constants(other)


def _constants(code: CodeType) -> list[object]:
    return [
        (each.co_code, _constants(each), each.co_names) if isinstance(each, CodeType) else (type(each), repr(each))
        for each in code.co_consts
    ]


def mark(paths: Sequence[str], reached: set[Place]) -> None:
    """Let every function of these modules add the statements that it reaches to `reached`, in all of this process."""
    setattr(builtins, _MARK, reached.add)
    functions = live_functions(paths)
    for path in paths:
        for code in _codes(path, _marked(path, (ROOT / path).read_text(encoding="utf-8"))):
            for function in functions.get((path, code.co_qualname, code.co_firstlineno), []):
                if function.__code__.co_freevars == code.co_freevars:
                    function.__code__ = code


def _marked(path: str, source: str) -> ast.Module:
    """Return a module in which a mark stands before each statement of each function."""
    tree = ast.parse(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list) and body and not _is_mark(body[0]):
                    setattr(node, name, [each for statement in body for each in (*_marks(path, statement), statement)])
    return ast.fix_missing_locations(tree)


def _marks(path: str, statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the mark before a statement; a docstring stays first, and what only declares names needs none."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if not is_text and not isinstance(statement, ast.Global | ast.Nonlocal):
        place = ast.Tuple([ast.Constant(path), ast.Constant(statement.lineno)], ast.Load())
        yield ast.copy_location(ast.Expr(ast.Call(ast.Name(_MARK, ast.Load()), [place], [])), statement)


def _is_mark(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Call(func=ast.Name(id=name))):
            return name == _MARK
    return False


def statement_line(source: str, line: int, column: int) -> int:
    """Return the first line of the innermost statement of a text that holds a place."""
    best = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) <= (line, column):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            if (line, column) <= (node.end_lineno, node.end_col_offset):
                best = max(best, node.lineno)
    return best
