"""The public surface as text: every name in a root's `__all__`, or of a module that a README imports, with signature.

`python -m tests.architecture` writes it to public_api.txt, which a test compares; a change of the surface
therefore shows as a change of that file, beside the sentence in the README that tells users of it.

Of a module that a python block of a README imports it is the `__all__`, or else the public names that the module
defines. Any other module is private.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Final

from tests.architecture.house import PACKAGES, ROOT
from tests.architecture.readme import DOCUMENTS, imported_modules

SNAPSHOT: Final = Path(__file__).with_name("public_api.txt")
HEADING: Final = "# The public surface, written by `python -m tests.architecture`; a test compares it.\n"
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


def public_modules() -> list[str]:
    """Return the names of the packages, then of all modules that a README imports, sorted."""
    texts = (path.read_text(encoding="utf-8") for name in DOCUMENTS if (path := ROOT / name).is_file())
    taught = {name for text in texts for name in imported_modules(text)}
    return [*PACKAGES, *sorted(taught - PACKAGES.keys())]


def render() -> str:
    """Return the surface of all public modules, one line a name, methods indented below their class."""
    return HEADING + "".join(f"\n{render_module(name)}" for name in public_modules())


def public_names(module: ModuleType) -> list[str]:
    """Return what a module lists in `__all__`; without one, the public names that its own file defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    body = ast.parse(inspect.getsource(module)).body
    assigned = {
        target.id
        for node in body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    defined = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return sorted(name for name in assigned | defined if not name.startswith("_"))


def render_module(name: str) -> str:
    """Return the surface of one module, sorted by name."""
    module = importlib.import_module(name)
    lines = [f"[{name}]"]
    for public in public_names(module):
        lines.extend(describe(public, getattr(module, public)))
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
