"""The API reference: one page a module, written by pdoc from the docstrings.

`python -m tests.architecture docs OUT` writes it to the folder OUT and opens with `OUT/index.html`. Every public module
of the five packages has a page, whether its package lists it in `__all__` or not. A type that pdoc cannot resolve
stands there as it is written.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from pathlib import Path
from typing import Final

from tests.architecture.house import ROOT, modules

TEMPLATES: Final = Path(__file__).with_name("docs_templates")


def is_possible() -> bool:
    """Return whether pdoc is installed."""
    return importlib.util.find_spec("pdoc") is not None


def documented_modules() -> list[str]:
    """Return the names of all modules that have a page, sorted; those with a leading underscore have none."""
    return sorted(module.name for module in modules(ROOT) if not re.search(r"\._", module.name))


def build(out: Path, names: list[str]) -> None:
    """Write the pages of `names` to `out`."""
    import pdoc.doc
    import pdoc.render

    pdoc.render.configure(template_directory=TEMPLATES, show_source=False, footer_text="brokerside")
    with warnings.catch_warnings(action="ignore"):
        for module in map(importlib.import_module, names):  # With the names that a root loads late.
            vars(module).update({name: getattr(module, name) for name in getattr(module, "__all__", ())})
        pages = {name: pdoc.doc.Module.from_name(name) for name in names}
        texts = {f"{name.replace('.', '/')}.html": pdoc.render.html_module(page, pages) for name, page in pages.items()}
        texts |= {"index.html": pdoc.render.html_index(pages), "search.js": pdoc.render.search_index(pages)}
    for path, text in texts.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
