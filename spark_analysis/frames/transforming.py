"""Let every question be asked directly, and in `DataFrame.transform`.

balance.measures(partitions, brokers)
partitions.transform(balance.measures(brokers=brokers))
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, overload

from pyspark.sql import DataFrame

Given = ParamSpec("Given")
Transform: TypeAlias = Callable[[DataFrame], DataFrame]


class Question(Protocol[Given]):
    """Answer about a DataFrame, or return the function that does so for `DataFrame.transform`."""

    @overload
    def __call__(self, frame: DataFrame, /, *args: Given.args, **kwargs: Given.kwargs) -> DataFrame: ...
    @overload
    def __call__(self, **kwargs: Any) -> Transform: ...


def question(ask: Callable[Concatenate[DataFrame, Given], DataFrame]) -> Question[Given]:
    """Return the question so that it can be asked without its first DataFrame, which is then given to what it returns.

    Other DataFrames are given by name then.
    """
    first = next(iter(ask.__annotations__))

    @functools.wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if args or first in kwargs:
            return ask(*args, **kwargs)
        return functools.partial(_of_frame, ask, kwargs)

    return asked


def _of_frame(ask: Callable[..., DataFrame], given: dict[str, Any], frame: DataFrame) -> DataFrame:
    return ask(frame, **given)


__all__ = ("Question", "Transform", "question")
