"""List the shipped studies: TOML files beside this module.

Example: `brokerside study settings`.
"""

from __future__ import annotations

from importlib.resources import files

from replication.studies.study import Study, parse_study


def names() -> tuple[str, ...]:
    """Return the names of the shipped studies."""
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if _is_study(entry.name))
    )


def shipped(name: str) -> Study:
    """Return a shipped study by its name, one of `names()`."""
    return parse_study(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), name)


def _is_study(name: str) -> bool:
    return name.endswith(".toml")
