"""The API reference: one page a module, written by pdoc from the docstrings.

`python -m tests.architecture docs OUT` writes it to the folder OUT and opens with `OUT/index.html`. Every public module
of the five packages has a page, whether its package lists it in `__all__` or not.

Constraints: a warning of pdoc's is an error here. Most come from a type that it cannot read; what it cannot read
through no fault of the source is resolved before it looks: the fields of NamedTuples, the results of Hypothesis's
composite strategies and the constructors of attrs classes that inherit fields, which keep their types as texts without
the module that they belong to.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import types
import typing
import warnings
from pathlib import Path
from typing import Final

import attrs

from tests.architecture.house import ROOT, modules

ARRAY_OF_311: Final = "type 'array.array' is not subscriptable"
"""What Python 3.11 says of `array[int]`, which 3.12 can read."""

TEMPLATES: Final = Path(__file__).with_name("docs_templates")


def is_possible() -> bool:
    """Return whether pdoc is installed."""
    return importlib.util.find_spec("pdoc") is not None


def documented_modules() -> list[str]:
    """Return the names of all modules that have a page, sorted; those with a leading underscore have none."""
    return sorted(module.name for module in modules(ROOT) if not re.search(r"\._", module.name))


def build(out: Path, names: list[str]) -> list[str]:
    """Write the pages of `names` to `out` and return pdoc's warnings, each once, as text."""
    import pdoc.doc
    import pdoc.render

    pdoc.render.configure(template_directory=TEMPLATES, show_source=False, footer_text="brokerside")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in names:
            prepare(importlib.import_module(name))
        pages = {name: pdoc.doc.Module.from_name(name) for name in names}
        for name, page in pages.items():
            _write(out / f"{name.replace('.', '/')}.html", pdoc.render.html_module(page, pages))
        _write(out / "index.html", pdoc.render.html_index(pages))
        _write(out / "search.js", pdoc.render.search_index(pages))
    return sorted({str(one.message) for one in caught if ARRAY_OF_311 not in str(one.message)})


def prepare(module: types.ModuleType) -> None:
    """Load names that a root loads late, and replace texts by types where they would be read without their module."""
    for name in getattr(module, "__all__", ()):
        vars(module)[name] = getattr(module, name)
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, tuple) and hasattr(value, "_fields"):
            value.__new__.__annotations__ = value.__annotations__ = typing.get_type_hints(value)
        elif inspect.isclass(value) and attrs.has(value) and any(field.inherited for field in attrs.fields(value)):
            known = typing.get_type_hints(value)  # Looks each field up in the module of the class that has it.
            types_of = {field.alias: known[field.name] for field in attrs.fields(value) if field.init}
            value.__init__.__annotations__ = value.__init__.__annotations__ | types_of  # type: ignore[misc]  # mypy sees a method.
        elif inspect.isfunction(value) and "SearchStrategy" in str(value.__annotations__.get("return", "")):
            known = typing.get_type_hints(value, vars(module))
            found = inspect.signature(value)
            parameters = [
                one.replace(annotation=known.get(name, one.annotation)) for name, one in found.parameters.items()
            ]
            resolved = found.replace(parameters=parameters, return_annotation=known["return"])
            vars(value)["__signature__"] = vars(inspect.unwrap(value))["__signature__"] = resolved


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
