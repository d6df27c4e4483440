"""The READMEs as programs: their examples are run, and what they print is compared.

Convention, per fenced block:

- ```python blocks run in order, in one namespace per section (a heading of any depth starts one). A ```text
  block that follows directly, only blank lines between, is exactly what the block prints.
- ```console blocks hold lines `$ command`; lines without `$ ` are what the command prints. `brokerside …` and
  `python -m …` are run by this interpreter; other commands are refused, unless the block is not run. A command
  that is shown without output may print what it likes, but has to succeed. A line `…` in the output stands for
  any lines that are left out.
- `<!-- status N -->` on the line before a console block says that its commands end with exit status N, not 0.
- `<!-- not run: reason -->` on the line before a block leaves it out, `<!-- spark -->` marks it as one that
  starts Spark. All other blocks (```text, ```json, ```toml, …) are shown only.
"""

from __future__ import annotations

import ast
import contextlib
import glob
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from tests.architecture.house import PACKAGES, ROOT

FENCE: Final = re.compile(r"^```(\w*)\s*$")
HEADING: Final = re.compile(r"^#{1,6}\s+(.*?)\s*$")
NOT_RUN: Final = re.compile(r"^<!-- not run: (\S.*?) -->$")
SPARK: Final = "<!-- spark -->"
STATUS: Final = re.compile(r"^<!-- status (\d+) -->$")
LEFT_OUT: Final = "…"
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
COMMAND_TIMEOUT_S: Final = 600

DOCUMENTS: Final = (
    "README.md",
    *(f"{package}/README.md" for package in PACKAGES),
    "replication/testing/README.md",
    "tests/README.md",
    "tests/benchmarks/README.md",
)
"""Every README of the house; those that exist are run."""

WORDS_MAX: Final[Mapping[str, int]] = MappingProxyType(
    {
        "README.md": 700,
        "broker/README.md": 600,
        "placement/README.md": 1_200,
        "log/README.md": 900,
        "replication/README.md": 1_300,
        "spark_analysis/README.md": 1_500,
    }
)
"""How many words a README may have, code included."""

WORDS_MAX_TOGETHER: Final = 9_500


@attrs.frozen(kw_only=True)
class Block:
    """One fenced block: its language, its text, where it stands, and what precedes it."""

    language: str
    text: str
    line: int
    section: str
    not_run: str = ""
    spark: bool = False
    status: int = 0
    output: str | None = None


@attrs.frozen(kw_only=True)
class Command:
    """One command of a console block and what it is said to print; None when nothing is shown."""

    text: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document; a text block right after a python block becomes its output."""
    found: list[Block] = []
    section, lines, row, gap = "", text.splitlines(), 0, True
    comments: list[str] = []
    while row < len(lines):
        line = lines[row]
        if fence := FENCE.match(line):
            end = next((at for at in range(row + 1, len(lines)) if lines[at].rstrip() == "```"), len(lines))
            body = "".join(f"{one}\n" for one in lines[row + 1 : end])
            if fence[1] == "text" and not gap and found and found[-1].language == "python":
                found[-1] = attrs.evolve(found[-1], output=body)
            else:
                found.append(_block(fence[1], body, row + 1, section, comments))
            row, gap, comments = end + 1, False, []
            continue
        if heading := HEADING.match(line):
            section = f"{row + 1} {heading[1]}"
        if line.strip():
            gap = True
            comments = [*comments, line.strip()] if line.startswith("<!--") else []
        row += 1
    return found


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block, lines that end in a backslash joined."""
    found: list[Command] = []
    lines = block.text.splitlines()
    row = 0
    while row < len(lines):
        start = row
        if not lines[row].startswith("$ "):
            if not found:
                raise ValueError(f"line {block.line + 1 + row}: a console block starts with `$ command`")
            found[-1] = attrs.evolve(found[-1], output=f"{found[-1].output or ''}{lines[row]}\n")
            row += 1
            continue
        text = lines[row][2:]
        while text.endswith("\\"):
            row += 1
            text = text[:-1] + lines[row].strip()
        found.append(Command(text=text, line=block.line + 1 + start, output=None))
        row += 1
    return found


def run_python(block: Block, namespace: dict[str, object], document: str = "README.md") -> str:
    """Run a python block in `namespace` and return what it prints; errors name `document` and its line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + block.text, document, "exec"), namespace)
    return printed.getvalue()


def run_command(command: Command, *, root: Path, folder: Path, status: int = 0) -> str:
    """Run one command in `folder` and return what it prints to its output; raise ValueError when it may not or fails.

    `NAME=value` before the command sets the environment; a trailing `> file` is honoured within `folder`, and a
    word with an asterisk stands for the files there that it matches.
    """
    words = shlex.split(command.text, comments=True)
    settings = dict(word.split("=", maxsplit=1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    target = words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if ">" in words else words
    words = [path for word in words for path in (sorted(glob.glob(word, root_dir=folder)) or [word])]
    environment = os.environ | settings | {"PYTHONPATH": str(root), "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        _runnable(words, command),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    if done.returncode != status:
        raise ValueError(f"line {command.line}: `{command.text}` ended with {done.returncode}: {done.stderr.strip()}")
    if target is not None:
        (folder / Path(target).name).write_text(done.stdout, encoding="utf-8")
        return ""
    return done.stdout


def is_shown(printed: str, shown: str) -> bool:
    """Return whether a command printed what a README shows of it; a line `…` stands for any lines, none included."""
    lines = (r"(?:.*\n)*?" if line == LEFT_OUT else re.escape(f"{line}\n") for line in shown.rstrip().splitlines())
    return re.fullmatch("".join(lines), f"{printed.rstrip()}\n") is not None


def broken_links(text: str, folder: Path) -> Iterator[str]:
    """Yield links, relative to the document's folder, that lead to no file, and anchors that no heading has."""
    for match in LINK.finditer(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = folder / path
        if not there.exists():
            yield f"{target} leads nowhere"
            continue
        linked = text if not path else there.read_text(encoding="utf-8") if there.suffix == ".md" else None
        if anchor and linked is not None and anchor not in _anchors(linked):
            yield f"{target} is no heading"


def word_count(text: str) -> int:
    """Return the number of words of a document, as `wc -w` counts them."""
    return len(text.split())


def imported_modules(text: str) -> list[str]:
    """Return the modules of ours that the document's python blocks import names from, once each, sorted.

    A module that is not there is left out; the block that imports it fails when it is run.
    """
    found: set[str] = set()
    for block in blocks(text):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom):
                    inner = (f"{node.module}.{alias.name}" for alias in node.names)
                    found.update(name if _is_module(name) else node.module or "" for name in inner)
                elif isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
    return sorted(name for name in found if _is_module(name))


def named_modules(text: str) -> list[str]:
    """Return every module that the document runs with `python -m`, in code or in running text, once each."""
    return sorted(set(re.findall(r"python3? -m ([a-z_][\w.]*)", text)))


def named_subcommands(text: str) -> list[str]:
    """Return every subcommand of brokerside that the document names in code, once each."""
    inline = re.findall(r"`(?:\$ )?brokerside ([a-z][a-z-]*)", text)
    lines = re.findall(r"^\$ brokerside ([a-z][a-z-]*)", text, flags=re.MULTILINE)
    return sorted({*inline, *lines})


def is_runnable(module: str) -> bool:
    """Return whether `python -m module` finds something to run."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    is_package = found is not None and found.submodule_search_locations is not None
    return found is not None and (not is_package or importlib.util.find_spec(f"{module}.__main__") is not None)


def _block(language: str, body: str, line: int, section: str, comments: list[str]) -> Block:
    reasons = [match[1] for comment in comments if (match := NOT_RUN.match(comment))]
    return Block(
        language=language,
        text=body,
        line=line,
        section=section,
        not_run=reasons[0] if reasons else "",
        spark=SPARK in comments,
        status=next((int(match[1]) for comment in comments if (match := STATUS.match(comment))), 0),
    )


def _runnable(words: list[str], command: Command) -> list[str]:
    if words[:1] == ["brokerside"]:
        return [
            sys.executable,
            "-c",
            "import sys; from spark_analysis.cli import main; sys.exit(main())",
            *words[1:],
        ]
    if words[:2] in (["python", "-m"], ["python3", "-m"]):
        return [sys.executable, *words[1:]]
    raise ValueError(f"line {command.line}: `{command.text}` is neither brokerside nor python -m; mark it as not run")


def _is_module(name: str) -> bool:
    """Return whether one of our files is this module; nothing is imported, as that might load Spark."""
    package, *rest = name.split(".")
    path = ROOT.joinpath(package, *rest)
    return package in PACKAGES and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def _anchors(text: str) -> set[str]:
    return {_anchor(heading[1]) for line in text.splitlines() if (heading := HEADING.match(line))}


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")
