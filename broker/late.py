"""Import a package's heavier modules when one of their names is first used.

What it decides: which names of a package's `__init__` cost nothing until they are asked for. `import broker` is part
of every command, `brokerside --help` too, and must not load numpy for it.

Constraints: `from package import name`, `package.name` and `from package import *` work as if the name were imported
at the top. The `__init__` still imports the name under TYPE_CHECKING, for readers and type checkers.

Example: __getattr__ = late_names(__name__, {"broker.cluster": ("ClusterView",)})

Source: PEP 562.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def late_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of `package` that imports the module of a name at the name's first use.

    `modules` holds, for each module, the names that `package` offers from it. Raises AttributeError for other names.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)  # Python asks no second time.
        return value

    return find
