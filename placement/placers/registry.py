"""Load placers by name: Kafka's two, and those of installed packages.

A package offers one by naming a class without arguments under the entry point `brokerside.placers`; any other is named
as "module:class". Kafka's names
cannot be taken over; `classic`, `striped` and the shipped example `copyset` are known also where the packages came as a
zip and no entry point is.

    >>> load_placer("striped")
    StripedPlacer(release=Release(name='4.4'))
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from broker.errors import UsageError
from broker.releases import Release
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import ReplicaPlacer

PLACER_GROUP: Final = "brokerside.placers"
KAFKAS: Final[Mapping[str, ReplicaPlacer]] = MappingProxyType({"classic": ClassicPlacer(), "striped": StripedPlacer()})


SHIPPED: Final[Mapping[str, str]] = MappingProxyType({"copyset": "placement.examples.copyset:CopysetPlacer"})
"""Examples that need no entry point, as module:class."""


def load_offered(kind: str, name: str, group: str, known: Iterable[str]) -> object:
    """Return a new object of the class that an entry point in `group` has under the name `name`.

    Raises UsageError naming those there are, `known` ones included, and of which `kind` they are.
    """
    from importlib.metadata import entry_points  # Here, as loading it costs more than placing a topic.

    offered = {point.name: point for point in entry_points(group=group)}
    if name not in offered:
        raise UsageError(f"{kind} {name!r} is not installed; there are {', '.join(sorted({*offered, *known}))}")
    made: object = offered[name].load()()
    return made


def load_path(kind: str, path: str) -> object:
    """Return what "module:name" names, also of a module in the working directory.

    Raises UsageError naming the `kind` of object that was wanted.
    """
    module, _, name = path.partition(":")
    sys.path.append("")  # A command's own path has no working directory.
    try:
        found: object = getattr(import_module(module), name, None) if module and name else None
    except Exception as error:  # Whatever the module raises as it is imported.
        raise UsageError(f"{kind} {path!r}: {error}") from None
    finally:
        sys.path.remove("")
    if found is None:
        raise UsageError(f"{kind} {path!r} is not there; wanted is module:name")
    return found


CLASSIC_UNTIL: Final = Release("4.0")
"""The last release that has AdminUtils, the classic placer."""

STRIPED_SINCE: Final = Release("3.0")
"""The first release that has StripedReplicaPlacer (KAFKA-12788)."""


@functools.cache
def load_placer(name: str, release: Release | None = None) -> ReplicaPlacer:
    """Return the placer of this name as a release has it, the newest that has it where none is named.

    Raises UsageError for an unknown name, one of no placer, and for a placer that the release has not.
    """
    if name == "classic" and release is not None and release > CLASSIC_UNTIL:
        raise UsageError(f"Kafka {release} has no classic placer; the last release that has it is {CLASSIC_UNTIL}")
    if name == "striped" and release is not None:
        if release < STRIPED_SINCE:
            raise UsageError(f"Kafka {release} has no striped placer; the first release that has it is {STRIPED_SINCE}")
        return StripedPlacer(release)
    if name in KAFKAS:
        return KAFKAS[name]
    if ":" in name or name in SHIPPED:
        made = load_path("placer", SHIPPED.get(name, name))
        placer: object = made() if isinstance(made, type) else made
    else:
        placer = load_offered("placer", name, PLACER_GROUP, (*KAFKAS, *SHIPPED))
    if not isinstance(placer, ReplicaPlacer):
        raise UsageError(f"placer {name!r} has no method place(spec, brokers, entropy)")
    return placer
