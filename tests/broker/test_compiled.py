"""Functions compiled at their first call: where the machine code goes, and what reaches the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numba
import pytest

from broker.compilation import tell_of_compilation
from broker.compiled import compiled, compiled_with

NO_PLACE = "cannot cache function 'doubled': no locator available for file '/read/only.py'"  # In numba's words.


def doubled(number: int) -> int:
    return 2 * number


def quadrupled(number: int) -> int:
    return doubled(doubled(number))


def one_more_than_quadrupled(number: int) -> int:
    return quadrupled(number) + 1


def recording_njit(asked: list[dict[str, Any]], refusal: str | None = None) -> Callable[..., Any]:
    """numba.njit that notes what it is asked for, and refuses to cache when there is a refusal."""
    njit = numba.njit

    def recording(*functions: Any, **named: Any) -> Any:
        if functions:
            return njit(*functions, **named)  # Numba's own modules, which it loads at its first compilation.
        asked.append(named)
        if refusal is not None and named.get("cache"):
            raise RuntimeError(refusal)
        return njit(**named)

    return recording


def test_a_kernel_is_compiled_once_and_gives_what_the_plain_function_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = []
    monkeypatch.setattr(numba, "njit", recording_njit(options))
    kernel = compiled(doubled)
    assert [kernel(3), kernel(4)] == [doubled(3), doubled(4)]
    assert options == [{"cache": True, "nogil": True}]
    assert kernel.__wrapped__ is doubled  # type: ignore[attr-defined]  # functools.wraps sets it.


@pytest.mark.parametrize("helpers", [(doubled, quadrupled), (quadrupled, doubled)])
def test_helpers_that_call_each_other_are_compiled_into_the_kernel_in_any_order(
    helpers: tuple[Callable[[int], int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba, "njit", recording_njit([], NO_PLACE))
    assert compiled_with(*helpers)(one_more_than_quadrupled)(5) == 21
    assert type(doubled) is type(quadrupled) is FunctionType  # The module's own names stay plain functions.


def test_a_helper_that_is_not_named_is_unknown_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "njit", recording_njit([], NO_PLACE))
    with pytest.raises(numba.TypingError, match="doubled"):
        compiled_with(quadrupled)(one_more_than_quadrupled)(5)


def test_without_a_place_to_cache_a_kernel_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(numba, "njit", recording_njit(asked, NO_PLACE))
    assert compiled(doubled)(21) == 42
    assert asked == [{"cache": True, "nogil": True}, {"nogil": True}]


def test_any_other_failure_to_compile_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "njit", recording_njit([], "out of luck"))
    with pytest.raises(RuntimeError, match="out of luck"):
        compiled(doubled)(21)


FIRST: Final = "def grown(number):\n    return number + STEP\n"
KERNEL: Final = """
from broker.compiled import compiled_with
from {helpers} import grown

@compiled_with(grown)
def twice(number):
    return grown(grown(number))
"""


@pytest.mark.parametrize(
    ("changed", "then"),
    [
        ("STEP = 1\ndef grown(number):\n    return number * 10\n", "100"),
        ("STEP = 2\n" + FIRST, "5"),
        ("STEP = 1\n# Not another word.\n" + FIRST, "3"),
    ],
)
def test_a_helper_of_another_file_that_changed_is_compiled_anew(changed: str, then: str, tmp_path: Path) -> None:
    """The kernel's own file stays the same, so that numba's cache by itself would give the old machine code."""
    (tmp_path / "the_helpers.py").write_text("STEP = 1\n" + FIRST)
    (tmp_path / "the_kernel.py").write_text(KERNEL.format(helpers="the_helpers"))

    def said() -> str:
        call = [sys.executable, "-c", "from the_kernel import twice; print(twice(1))"]
        path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
        found = subprocess.run(call, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True)
        return found.stdout.strip()

    def cached() -> int:
        return len(list(tmp_path.rglob("the_kernel.twice*.nbc")))

    assert (said(), cached()) == ("3", 1)
    assert (said(), cached()) == ("3", 1)  # Found in the cache.
    (tmp_path / "the_helpers.py").write_text(changed)
    assert said() == then
    assert cached() == (1 if then == "3" else 2)


def test_the_first_compilation_is_told_once_and_a_kernel_that_is_cached_is_not() -> None:
    told: list[str] = []
    tell_of_compilation(lambda: told.append("compiles"))
    uncached = FunctionType(doubled.__code__.replace(co_filename="<nowhere>"), {"__name__": __name__})
    kernel = compiled(uncached)
    assert told == []
    assert [kernel(3), kernel(4), compiled(uncached)(5)] == [6, 8, 10]
    assert told == ["compiles"]
    assert compiled(doubled)(3) == 6  # Cached beside this file from here on.
    tell_of_compilation(lambda: told.append("again"))
    assert compiled(doubled)(3) == 6
    assert told == ["compiles"]
    tell_of_compilation(lambda: None)
