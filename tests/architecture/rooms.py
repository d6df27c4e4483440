"""The rooms of a package: drawn by its `__init__` docstring in reading order, equal to the disk, no arrow back up.

A room is a folder directly under a package, or a public root module (`__main__` is none: it only starts the command).
The docstring draws one room a line: exactly four spaces, the name (a folder with a trailing slash, a module without
`.py`), at least two spaces, and a plain sentence that ends with a full stop:

    errors   Raise InputError, CorruptDataError or RefusedError, by whose fault it is.
    java/    Reproduce Java's string hash, HashMap order and Random.

The order of the lines is the import order: a room may import the rooms above it, never one below it. A folder inside a
package may draw its own rooms too: then all its folders, and any of its modules; modules that it does not draw stand
below everything drawn.

A folder with many modules lists them for its reader instead, one bullet a line, the important ones first. The order of
bullets is not the import order; but the list names every module and folder, each once:

- filter: Decide which records of a batch stay.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from tests.architecture.house import PACKAGES, Complaint, Module, modules
from tests.architecture.imports import imports_of

DRAWN: Final = re.compile(r"^ {4}(?P<name>[a-z][a-z0-9_]*/?) {2,}(?P<sentence>\S.*)$")

LISTED: Final = re.compile(r"^- (?P<name>[a-z][a-z0-9_]*/?): (?P<sentence>\S.*)$")


@attrs.frozen
class Room:
    """One drawn or listed room: its name as the docstring writes it, its sentence, and the line in the docstring."""

    name: str
    sentence: str
    line: int


def drawn_rooms(module: Module) -> list[Room]:
    """Return the rooms that the docstring of an `__init__` draws, in order; empty when it draws none."""
    return _matches(module, DRAWN)


def listed_modules(module: Module) -> list[Room]:
    """Return the modules that the docstring of an `__init__` lists by bullets, in order; empty when it lists none."""
    return _matches(module, LISTED)


def rooms_on_disk(folder: Path) -> set[str]:
    """Return the names of the folders with modules and of the public root modules of a package's folder."""
    folders = {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return folders | {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}


def check_drawings(root: Path, listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield packages that draw no rooms, and drawings that differ from the disk or draw a room badly."""
    for module in listed:
        if not module.is_package:
            continue
        drawn = drawn_rooms(module)
        if not drawn and module.name not in PACKAGES:
            continue
        names = [room.name for room in drawn]
        there = rooms_on_disk((root / module.path).parent)
        wanted = there if module.name in PACKAGES else {name for name in there if name.endswith("/")}
        for name in sorted(wanted - set(names)):
            yield Complaint(module.path, 1, f"the docstring does not draw the room {name}")
        for at, room in enumerate(drawn):
            if room.name not in there:
                yield Complaint(module.path, room.line, f"the docstring draws {room.name}, which is not on disk")
            if room.name in names[:at]:
                yield Complaint(module.path, room.line, f"the docstring draws {room.name} twice")
            if not room.sentence.endswith("."):
                yield Complaint(module.path, room.line, f"the line of {room.name} is no sentence with a full stop")


def check_lists(root: Path, listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield lists of modules that differ from the disk, name a module twice, or have a line that is no sentence."""
    for module in listed:
        bullets = listed_modules(module) if module.is_package else []
        if not bullets:
            continue
        names = [bullet.name for bullet in bullets]
        there = rooms_on_disk((root / module.path).parent)
        for name in sorted(there - set(names)):
            yield Complaint(module.path, 1, f"the docstring does not list {name}")
        for at, bullet in enumerate(bullets):
            if bullet.name not in there:
                yield Complaint(module.path, bullet.line, f"the docstring lists {bullet.name}, which is not on disk")
            if bullet.name in names[:at]:
                yield Complaint(module.path, bullet.line, f"the docstring lists {bullet.name} twice")
            if not bullet.sentence.endswith("."):
                yield Complaint(module.path, bullet.line, f"the line of {bullet.name} is no sentence with a full stop")


def check_room_arrows(listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield every import from a room to one that its package draws below it, wherever in a file it is written."""
    everything = list(listed)
    names = {module.name for module in everything}
    for package in everything:
        order = {room.name.rstrip("/"): at for at, room in enumerate(drawn_rooms(package))}
        if not package.is_package or not order:
            continue
        for module in everything:
            here = _room(package.name, module.name)
            for found in imports_of(module, names):
                there = _room(package.name, found.target)
                if here in order and there and order[here] < order.get(there, len(order)):
                    text = f"imports {found.target}, but {package.name} draws {there} below {here}"
                    yield Complaint(module.path, found.line, text)


def all_complaints(root: Path, package: str) -> list[Complaint]:
    """Return what is wrong with the rooms of one top-level package, sorted and each once."""
    listed = modules(root, packages=(package,))
    return sorted({*check_drawings(root, listed), *check_lists(root, listed), *check_room_arrows(listed)})


def _matches(module: Module, pattern: re.Pattern[str]) -> list[Room]:
    """Return the lines of a module's docstring that match a pattern with a name and a sentence."""
    text = ast.get_docstring(module.tree, clean=False) or ""
    found = ((number, pattern.match(line)) for number, line in enumerate(text.splitlines(), start=1))
    return [Room(match["name"], match["sentence"], number) for number, match in found if match]


def _room(package: str, name: str) -> str:
    """Return the room of `package` in which a dotted name stands, or an empty text when it stands outside."""
    return name.removeprefix(f"{package}.").split(".", maxsplit=1)[0] if name.startswith(f"{package}.") else ""
