"""The check of rooms sees a drawing or list that is not true, and an import from a room to one drawn below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.rooms import all_complaints
from tests.architecture.test_imports import lines, tree

GOOD = {
    "broker/__init__.py": '"""Model a broker.\n\n    ids      Name things.\n    java/    Hash strings.\n"""\n',
    "broker/ids.py": "",
    "broker/__main__.py": "import broker.java.hash",
    "broker/py.typed": "",
    "broker/java/__init__.py": "",
    "broker/java/hash.py": "import broker.ids",
}


def test_a_true_drawing_is_accepted(tmp_path: Path) -> None:
    assert all_complaints(tree(tmp_path, GOOD), "broker") == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("broker/clock.py", "", "broker/__init__.py:1: the docstring does not draw the room clock"),
        ("broker/zoo/tree.py", "", "broker/__init__.py:1: the docstring does not draw the room zoo/"),
        ("broker/zoo/deep/tree.py", "", "broker/__init__.py:1: the docstring does not draw the room zoo/"),
        (
            "broker/__init__.py",
            '"""A.\n\n    ids    B.\n    java/  C.\n    gone   D.\n"""',
            "broker/__init__.py:5: the docstring draws gone, which is not on disk",
        ),
        (
            "broker/__init__.py",
            '"""A.\n\n    ids    B.\n    ids    B.\n    java/  C.\n"""',
            "broker/__init__.py:4: the docstring draws ids twice",
        ),
        (
            "broker/__init__.py",
            '"""A.\n\n    ids    names\n    java/  C.\n"""',
            "broker/__init__.py:3: the line of ids is no sentence with a full stop",
        ),
        (
            "broker/ids.py",
            "from broker.java import hash",
            "broker/ids.py:1: imports broker.java.hash, but broker draws java below ids",
        ),
        (
            "broker/ids.py",
            "def f():\n    from .java.hash import x",
            "broker/ids.py:2: imports broker.java.hash, but broker draws java below ids",
        ),
        (
            "broker/ids.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import broker.java",
            "broker/ids.py:3: imports broker.java, but broker draws java below ids",
        ),
    ],
)
def test_a_wrong_drawing_or_arrow_is_seen(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    assert lines(all_complaints(tree(tmp_path, GOOD | {path: text}), "broker")) == [complaint]


def test_a_folder_that_draws_rooms_is_held_to_them(tmp_path: Path) -> None:
    drawing = '"""A.\n\n    tree/  B.\n    set/   C.\n"""\n'
    files = GOOD | {
        "broker/java/__init__.py": drawing,
        "broker/java/tree/bins.py": "import broker.java.set.order\nimport broker.java.hash",
        "broker/java/set/order.py": "",
        "broker/java/extra/more.py": "",
    }
    assert lines(all_complaints(tree(tmp_path, files), "broker")) == [
        "broker/java/__init__.py:1: the docstring does not draw the room extra/",
        "broker/java/tree/bins.py:1: imports broker.java.set.order, but broker.java draws set below tree",
        "broker/java/tree/bins.py:2: imports broker.java.hash, but broker.java draws hash below tree",
    ]


def test_a_package_must_draw_its_rooms_and_a_folder_inside_need_not(tmp_path: Path) -> None:
    assert lines(
        all_complaints(tree(tmp_path, GOOD | {"broker/__init__.py": '"""Model a broker."""\n'}), "broker")
    ) == [
        "broker/__init__.py:1: the docstring does not draw the room ids",
        "broker/__init__.py:1: the docstring does not draw the room java/",
    ]


LIST = '"""Hash.\n\n- hash: Hash strings.\n- tree/: Sort\n- hash: Hash again.\n- gone: Go.\n"""\n'


def test_a_list_of_modules_names_each_module_of_its_folder_once(tmp_path: Path) -> None:
    listed = {"broker/java/__init__.py": LIST, "broker/java/tree/bins.py": "", "broker/java/order.py": ""}
    assert lines(all_complaints(tree(tmp_path, GOOD | listed), "broker")) == [
        "broker/java/__init__.py:1: the docstring does not list order",
        "broker/java/__init__.py:4: the line of tree/ is no sentence with a full stop",
        "broker/java/__init__.py:5: the docstring lists hash twice",
        "broker/java/__init__.py:6: the docstring lists gone, which is not on disk",
    ]


def test_a_true_list_is_accepted_in_any_order(tmp_path: Path) -> None:
    text = '"""Hash.\n\n- order: Order.\n- hash: Hash strings.\n"""\n'
    files = {
        "broker/java/__init__.py": text,
        "broker/java/hash.py": "",
        "broker/java/order.py": "import broker.java.hash",
    }
    assert all_complaints(tree(tmp_path, GOOD | files), "broker") == []
