"""The public surface as text: every name in a package's `__all__`, with its signature.

`python -m tests.architecture` writes it to public_api.txt, which a test compares; a change of the surface
therefore shows as a change of that file, beside the sentence in the README that tells users of it.

Modules are not opened: what a package does not list in `__all__` of its `__init__.py` is private.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from pathlib import Path
from typing import Final

from tests.architecture.house import PACKAGES

SNAPSHOT: Final = Path(__file__).with_name("public_api.txt")
HEADING: Final = "# The public surface, written by `python -m tests.architecture`; a test compares it.\n"
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


def render() -> str:
    """Return the surface of all packages, one line a name, methods indented below their class."""
    return HEADING + "".join(f"\n{render_package(package)}" for package in PACKAGES)


def render_package(name: str) -> str:
    """Return the surface of one package, sorted by name."""
    package = importlib.import_module(name)
    lines = [f"[{name}]"]
    for public in sorted(package.__all__):
        lines.extend(describe(public, getattr(package, public)))
    return "\n".join(lines) + "\n"


def write() -> Path:
    """Write the snapshot and return its path."""
    SNAPSHOT.write_text(render(), encoding="utf-8")
    return SNAPSHOT


def describe(name: str, value: object) -> list[str]:
    """Return the lines of one public name: a class with its public members, a function, or a value's type."""
    if inspect.isclass(value):
        if issubclass(value, enum.Enum):
            return [f"enum {name}: {', '.join(member.name for member in value)}"]
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        return [f"class {name}({bases})", *(f"    {_describe_member(value, member)}" for member in _members(value))]
    if callable(value) and not hasattr(value, "__supertype__"):
        return [f"def {name}{_signature(value)}"]
    return [f"{name}: {type(value).__name__}"]


def _members(owner: type) -> list[str]:
    """Return the public members of a class, with those that it has from our other classes, which may be private.

    What errors have in common is written once, at the family.
    """
    bases = [base for base in owner.__mro__[1:] if base.__module__.split(".")[0] in PACKAGES]
    classes = (owner, *(base for base in bases if not issubclass(base, BaseException)))
    found = {member for each in classes for member in vars(each) if not member.startswith("_")}
    return sorted(found | ({"__init__"} & vars(owner).keys()))


def _describe_member(owner: type, name: str) -> str:
    value = inspect.getattr_static(owner, name)
    if name == "__init__":
        return f"{owner.__name__}{_signature(owner)}"
    if isinstance(value, property):
        return f"{name}: property"
    if isinstance(value, staticmethod | classmethod):
        return f"{type(value).__name__} {name}{_signature(getattr(owner, name))}"
    return f"def {name}{_signature(value)}" if inspect.isfunction(value) else name


def _signature(value: object) -> str:
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type] # anything callable; the rest raises.
    except (TypeError, ValueError):
        return "(...)"
    return _ADDRESS.sub("", text).replace("'", "")
