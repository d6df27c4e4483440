"""Functions compiled at their first call: where the machine code goes, and what reaches the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from broker.compiled import compiled, compiled_with, interpreted_at_most, on_compilation
from broker.interpreted import Interpreter

NO_PLACE = "cannot cache function 'doubled': no locator available for file '/read/only.py'"  # In numba's words.


@pytest.fixture
def always_compiled() -> Iterator[None]:
    with interpreted_at_most(-1):
        yield


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


@pytest.mark.usefixtures("always_compiled")
def test_a_kernel_is_compiled_once_and_gives_what_the_plain_function_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = []
    monkeypatch.setattr(numba, "njit", recording_njit(options))
    kernel = compiled(doubled)
    assert [kernel(3), kernel(4)] == [doubled(3), doubled(4)]
    assert options == [{"cache": True, "nogil": True}]
    assert kernel.__wrapped__ is doubled  # type: ignore[attr-defined]  # functools.wraps sets it.


@pytest.mark.usefixtures("always_compiled")
@pytest.mark.parametrize("helpers", [(doubled, quadrupled), (quadrupled, doubled)])
def test_helpers_that_call_each_other_are_compiled_into_the_kernel_in_any_order(
    helpers: tuple[Callable[[int], int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba, "njit", recording_njit([], NO_PLACE))
    assert compiled_with(*helpers)(one_more_than_quadrupled)(5) == 21
    assert type(doubled) is type(quadrupled) is FunctionType  # The module's own names stay plain functions.


@pytest.mark.usefixtures("always_compiled")
def test_without_a_place_to_cache_a_kernel_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(numba, "njit", recording_njit(asked, NO_PLACE))
    assert compiled(doubled)(21) == 42
    assert asked == [{"cache": True, "nogil": True}, {"nogil": True}]


FIRST: Final = "def grown(number):\n    return number + STEP\n"
KERNEL: Final = """
from broker.compiled import compiled_with, interpreted_at_most
from {helpers} import grown

@compiled_with(grown)
def twice(number):
    return grown(grown(number))

never_interpreted = interpreted_at_most(-1)
never_interpreted.__enter__()
"""


@pytest.mark.deep
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


@pytest.mark.usefixtures("always_compiled")
def test_the_first_compilation_is_notified_once_and_a_kernel_that_is_cached_is_not() -> None:
    notes: list[str] = []
    on_compilation(lambda: notes.append("compiles"))
    uncached = FunctionType(doubled.__code__.replace(co_filename="<nowhere>"), {"__name__": __name__})
    kernel = compiled(uncached)
    assert notes == []
    assert [kernel(3), kernel(4), compiled(uncached)(5)] == [6, 8, 10]
    assert notes == ["compiles"]
    assert compiled(doubled)(3) == 6  # Cached beside this file from here on.
    on_compilation(lambda: notes.append("again"))
    assert compiled(doubled)(3) == 6
    assert notes == ["compiles"]
    on_compilation(lambda: None)


def summed(numbers: NDArray[np.uint8]) -> int:
    total = 0
    for number in numbers:
        total += number << 8
    return total


def shifted(data: NDArray[np.uint8], out: NDArray[np.uint64]) -> tuple[int, bool]:
    own = np.zeros(2, np.int32)
    own[0] = 2**31 - 1
    out[0] = (data[0] << 8) + own[0]
    out[1] = np.uint64(2**63) * np.uint64(2) + np.uint64(data[1])  # Wraps around.
    own[1] = 2**31 + 2**40 + 5  # Too large: the lower bits stay.
    far = np.int64(own[0] * own[0] * 8)  # Beyond 64 bits.
    out[2] = own[1] + 2**31 + (far & 0xFF)
    return own[0] + own[0], data[0] == 255


def test_a_kernel_computes_the_same_interpreted_and_compiled() -> None:
    answers = []
    for steps in (-1, 1_000):
        out = np.zeros(3, np.uint64)
        with interpreted_at_most(steps):
            answers.append((compiled(shifted)(np.array([255, 7], np.uint8), out), out.tolist()))
    assert answers[0] == answers[1] == ((2**32 - 2, True), [255 * 256 + 2**31 - 1, 7, 13])
    assert [type(value) for value in answers[1][0]] == [int, bool]


def running_sum(numbers: NDArray[np.int32], reads: NDArray[np.int64]) -> int:
    """Sum of all numbers, written over them as it grows; `reads` counts what was read."""
    total = 0
    for index in range(len(numbers)):
        total += numbers[index]
        numbers[index] = total
        reads[0] += 1
    return total


def test_a_kernel_is_interpreted_until_its_calls_together_read_much(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(numba, "njit", recording_njit(asked))
    kernel = compiled(summed)
    with interpreted_at_most(25):
        tens = [kernel(np.ones(10, np.uint8)) for _ in range(2)]
        assert asked == []
        tens += [kernel(np.ones(10, np.uint8)) for _ in range(2)]
    assert tens == [2_560] * 4
    assert asked == [{"cache": True, "nogil": True}]


def test_a_call_that_reads_too_much_begins_again_compiled_on_its_arrays_as_they_were() -> None:
    with interpreted_at_most(60):  # Ten steps make forty reads and writes; the next ten are too many.
        kernel = compiled(running_sum)
        for _ in range(3):
            numbers, reads = np.arange(10, dtype=np.int32), np.zeros(1, np.int64)
            assert kernel(numbers, reads) == 45
            assert numbers.tolist() == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]
            assert reads.tolist() == [10]


def test_machine_code_that_is_there_serves_small_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled(summed)
    with interpreted_at_most(9):
        assert kernel(np.ones(10, np.uint8)) == 2_560
        monkeypatch.setattr(Interpreter, "run", lambda *_, **__: pytest.fail("a small call was interpreted"))
        assert kernel(np.ones(2, np.uint8)) == 512


@pytest.mark.deep
def test_where_numba_may_not_compile_a_large_kernel_is_interpreted_with_the_same_answer() -> None:
    call = (
        "import numpy as np; from tests.broker.test_compiled import compiled, shifted, interpreted_at_most\n"
        "with interpreted_at_most(-1): print(compiled(shifted)(np.array([255, 7], np.uint8), np.zeros(3, np.uint64)))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout == "(4294967294, True)\n"
