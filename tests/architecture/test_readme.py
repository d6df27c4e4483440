"""The README tells the truth: its examples run and print what it shows, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import readme
from tests.architecture.house import ROOT
from tests.architecture.readme import Block, Command, blocks, broken_links, commands, run_command, run_python

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8") if README.is_file() else ""
BLOCKS = blocks(TEXT)
SECTIONS = sorted({block.section for block in BLOCKS if block.language == "python" and not block.not_run})
CONSOLE = [block for block in BLOCKS if block.language == "console" and not block.not_run]


def check_python(section: list[Block], namespace: dict[str, object]) -> None:
    for block in section:
        printed = run_python(block, namespace)
        assert printed == (block.output or ""), f"the block at line {block.line} prints something else"


def check_console(block: Block, folder: Path) -> None:
    """Run the block in a folder that holds what the README takes from a clone: the files of the tests."""
    (folder / "tests").symlink_to(ROOT / "tests")
    for command in commands(block):
        printed = run_command(command, root=ROOT, folder=folder)
        if command.output is not None:
            assert printed.rstrip() == command.output.rstrip(), f"line {command.line}: {command.text}"


def by_id(block: Block) -> str:
    return f"line-{block.line}"


@pytest.mark.parametrize("section", SECTIONS)
def test_python_examples_print_what_is_shown(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    chosen = [block for block in BLOCKS if block.section == section and block.language == "python"]
    check_python([block for block in chosen if not block.not_run], {"__name__": "__readme__"})


@pytest.mark.parametrize("block", [block for block in CONSOLE if not block.spark], ids=by_id)
def test_commands_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    check_console(block, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("block", [block for block in CONSOLE if block.spark], ids=by_id)
def test_commands_with_spark_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    check_console(block, tmp_path)


def test_links_lead_somewhere() -> None:
    assert list(broken_links(TEXT, ROOT)) == []


def test_links_in_the_guide_to_tests_lead_somewhere() -> None:
    guide = ROOT / "tests" / "README.md"
    assert list(broken_links(guide.read_text(encoding="utf-8"), guide.parent)) == []


@pytest.mark.parametrize("document", ["README.md", "tests/README.md"])
def test_modules_that_a_document_runs_are_there(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    assert [module for module in readme.named_modules(text) if not readme.is_runnable(module)] == []


def test_subcommands_that_the_readme_names_are_there(tmp_path: Path) -> None:
    named = readme.named_subcommands(TEXT)
    if named:
        shown = run_command(Command(text="brokerside --help", line=0, output=None), root=ROOT, folder=tmp_path)
        assert [name for name in named if not re.search(rf"^\W*{name}\b", shown, flags=re.MULTILINE)] == []


EXAMPLE = """# One

```python
x = 1
print(x)
```

```text
1
```

```python
print(x + 1)
```

Something else, so that this is no output:

```text
shown
```

## Two

<!-- not run: needs a network -->
```console
$ git clone somewhere
```

<!-- spark -->

```console
$ brokerside demo \\
    --out there
done
$ python -m broker diagram
```
"""


def test_blocks_know_their_section_their_output_and_their_marks() -> None:
    first, second, shown, left_out, spark = blocks(EXAMPLE)
    assert (first.language, first.text, first.output, first.section) == ("python", "x = 1\nprint(x)\n", "1\n", "1 One")
    assert (second.output, second.section) == (None, "1 One")
    assert (shown.language, shown.text) == ("text", "shown\n")
    assert (left_out.not_run, left_out.spark) == ("needs a network", False)
    assert (spark.not_run, spark.spark) == ("", True)


def test_commands_are_joined_and_know_their_output() -> None:
    first, second = commands(blocks(EXAMPLE)[-1])
    assert (first.text, first.output) == ("brokerside demo --out there", "done\n")
    assert (second.text, second.output) == ("python -m broker diagram", None)


def test_blocks_of_a_section_share_their_names() -> None:
    with pytest.raises(AssertionError, match="line 12 prints something else"):
        check_python(blocks(EXAMPLE)[:2], {})


def test_an_error_in_an_example_names_the_line_of_the_readme() -> None:
    (block,) = blocks("text\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_python(block, {})
    assert caught.traceback[-1].lineno + 1 == 4


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("rm -r x", "is neither brokerside nor python -m; mark it as not run"),
        (
            "python -m broker config no.such.setting",
            "ended with 2: python -m broker: there is no setting 'no.such.setting'",
        ),
    ],
)
def test_a_command_that_may_not_run_or_fails_is_seen(tmp_path: Path, line: str, error: str) -> None:
    (command,) = commands(blocks(f"```console\n$ {line}\n```\n")[0])
    with pytest.raises(ValueError, match=error):
        run_command(command, root=ROOT, folder=tmp_path)


def test_wrong_output_of_a_command_is_seen(tmp_path: Path) -> None:
    (block,) = blocks("```console\n$ python -m broker diagram zookeeper\nnonsense\n```\n")
    with pytest.raises(AssertionError, match="line 2: python -m broker diagram zookeeper"):
        check_console(block, tmp_path)


def test_a_console_block_without_a_command_is_seen() -> None:
    with pytest.raises(ValueError, match="line 2: a console block starts with"):
        commands(blocks("```console\nls\n```\n")[0])


def test_broken_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    text = "# A `b` heading\n[a](there.md) [b](gone.md) [c](#a-b-heading) [d](#gone) [e](https://kafka.apache.org)\n"
    assert list(broken_links(text, tmp_path)) == ["gone.md leads nowhere", "#gone is no heading"]


def test_the_convention_is_written_where_it_is_kept() -> None:
    for word in ("not run: reason", "<!-- spark -->", "namespace per section"):
        assert word in (readme.__doc__ or "")


def test_named_commands_are_found_in_code_and_in_blocks() -> None:
    prose = "Run `brokerside report X` or `python -m tests golden`."
    text = f"{prose}\n```console\n$ brokerside fleet-demo a\n$ python -m broker\n```\n"
    assert readme.named_subcommands(text) == ["fleet-demo", "report"]
    assert readme.named_modules(text) == ["broker", "tests"]


@pytest.mark.parametrize(
    ("module", "runs"), [("broker", True), ("broker.config", False), ("no.such", False), ("tests.architecture", True)]
)
def test_a_package_runs_only_with_a_main_of_its_own(module: str, runs: bool) -> None:
    assert readme.is_runnable(module) is runs
