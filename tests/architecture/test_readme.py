"""The READMEs tell the truth: their examples run and print what they show, their links lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_analysis.cli.commands import JOINED
from tests.architecture import readme
from tests.architecture.house import ROOT
from tests.architecture.readme import Block, blocks, broken_links, commands, run_command, run_python

TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in readme.DOCUMENTS if (ROOT / name).is_file()}
RUN = [(name, block) for name, text in TEXTS.items() for block in blocks(text) if not block.not_run]
SECTIONS = sorted({(name, block.section) for name, block in RUN if block.language == "python"})
CONSOLE = [(name, block) for name, block in RUN if block.language == "console"]


def check_python(section: list[Block], namespace: dict[str, object], document: str = "README.md") -> None:
    for block in section:
        printed = run_python(block, namespace, document)
        assert printed == (block.output or ""), f"the block at line {block.line} prints something else"


def check_console(block: Block, folder: Path) -> None:
    """Run the block in a folder that holds what a README takes from a clone: the files of the tests."""
    (folder / "tests").symlink_to(ROOT / "tests")
    for command in commands(block):
        printed = run_command(command, root=ROOT, folder=folder, status=block.status)
        if command.output is not None:
            assert readme.is_shown(printed, command.output), f"line {command.line}: {command.text}\n{printed}"


FIRST = {name: next((block for document, block in RUN if document == name), None) for name in TEXTS}
"""The first block that each document runs; it belongs to the fast tier, as all of the front page does."""


def marks(document: str, block: Block) -> list[pytest.MarkDecorator]:
    return [] if document == "README.md" or block is FIRST[document] else [pytest.mark.deep]


def cases(spark: bool) -> list[object]:
    return [
        pytest.param(block, id=f"{name}:{block.line}", marks=marks(name, block))
        for name, block in CONSOLE
        if block.spark is spark
    ]


def sections() -> list[object]:
    firsts = {pair: block for name, block in reversed(RUN) if (pair := (name, block.section)) in set(SECTIONS)}
    return [pytest.param(*pair, marks=marks(pair[0], firsts[pair])) for pair in SECTIONS]


@pytest.mark.parametrize(("document", "section"), sections())
def test_python_examples_print_what_is_shown(
    document: str, section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    chosen = [block for name, block in RUN if (name, block.section, block.language) == (document, section, "python")]
    check_python(chosen, {"__name__": "__readme__"}, document)


@pytest.mark.parametrize("block", cases(spark=False))
def test_commands_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    check_console(block, tmp_path)


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.parametrize("block", cases(spark=True))
def test_commands_with_spark_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    check_console(block, tmp_path)


@pytest.mark.parametrize("document", TEXTS)
def test_links_lead_somewhere(document: str) -> None:
    assert list(broken_links(TEXTS[document], (ROOT / document).parent)) == []


@pytest.mark.parametrize("document", TEXTS)
def test_modules_that_a_document_runs_are_there(document: str) -> None:
    assert [module for module in readme.named_modules(TEXTS[document]) if not readme.is_runnable(module)] == []


@pytest.mark.parametrize("document", TEXTS)
def test_subcommands_that_a_document_names_are_there(document: str) -> None:
    assert set(readme.named_subcommands(TEXTS[document])) <= set(JOINED)


@pytest.mark.parametrize("document", readme.WORDS_MAX)
def test_a_document_is_short_enough_to_be_read(document: str) -> None:
    assert readme.word_count(TEXTS[document]) <= readme.WORDS_MAX[document]


def test_all_documents_together_are_short_enough() -> None:
    assert sum(map(readme.word_count, TEXTS.values())) <= readme.WORDS_MAX_TOGETHER


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


@pytest.mark.parametrize(
    ("shown", "is_shown"),
    [
        ("a\nb\nc\n", True),
        ("a\n…\nc\n", True),
        ("…\nb\n…\n", True),
        ("a\nb\nc\n…\n", True),
        ("a\nc\n", False),
        ("…\nb\n", False),
        ("a\n…\nd\n", False),
        ("…\nc\n…\nb\n…\n", False),
    ],
)
def test_a_line_of_dots_stands_for_lines_left_out(shown: str, is_shown: bool) -> None:
    assert readme.is_shown("a\nb\nc\n", shown) is is_shown


def test_only_our_own_commands_run_and_end_with_the_status_that_their_block_says(tmp_path: Path) -> None:
    (refused,) = blocks("<!-- status 2 -->\n```console\n$ python -m broker config no.such.setting\n```\n")
    assert refused.status == 2
    check_console(refused, tmp_path)
    (command,) = commands(refused)
    with pytest.raises(ValueError, match=r"ended with 2: python -m broker: there is no setting 'no\.such\.setting'"):
        run_command(command, root=ROOT, folder=tmp_path)
    (strange,) = commands(blocks("```console\n$ rm -r x\n```\n")[0])
    with pytest.raises(ValueError, match="is neither brokerside nor python -m; mark it as not run"):
        run_command(strange, root=ROOT, folder=tmp_path)


def test_broken_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()
    text = "# A `b` heading\n[a](there.md) [b](gone.md) [c](#a-b-heading) [d](#gone) [e](https://kafka.apache.org)\n"
    assert list(broken_links(text, tmp_path)) == ["gone.md leads nowhere", "#gone is no heading"]
    (tmp_path / "there.md").write_text("## Here\n")
    text = "[a](there.md#here) [b](there.md#gone) [c](../there.md)"
    assert list(broken_links(text, tmp_path)) == ["there.md#gone is no heading", "../there.md leads nowhere"]
