"""MirrorMaker's own classes behind a pipe: one Java process that answers a line for a line.

What it decides: nothing. It lets the tests ask released classes of connect-mirror what they would do.

Constraints: as `tests.kafka.jvm` says. The jars are named in java/mirror/pom.xml; they are few and need no network
once Maven has them.

Source: the classes called are named in java/mirror/MirrorOracle.java.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from replication.mirror.syncs import SYNC_COUNT
from tests.kafka.jvm import COMPILE_SECONDS_MAX, JAVA_SOURCES, JavaProcess, _run, _tool, class_path_of

_SOURCES: Final = JAVA_SOURCES / "mirror"


class MirrorJvm(JavaProcess[str]):
    """A running Java process with MirrorMaker's classes. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path) -> MirrorJvm:
        """Find the jars, compile our one Java file into `build_directory`, and start Java.

        Raises KafkaUnavailableError, with the reason, when any of that cannot be had.
        """
        java, javac, maven = (_tool(name) for name in ("java", "javac", "mvn"))
        class_path = class_path_of(maven, _SOURCES / "pom.xml", build_directory / "mirror-class-path.txt")
        classes = build_directory / "mirror-classes"
        classes.mkdir()
        _run([javac, "-cp", class_path, "-d", str(classes), str(_SOURCES / "MirrorOracle.java")], COMPILE_SECONDS_MAX)
        command = [java, "-ea", "-cp", f"{classes}:{class_path}", "org.apache.kafka.connect.mirror.MirrorOracle"]
        return cls(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
            )
        )

    def store(
        self, syncs: Sequence[tuple[int, int]], queries: Sequence[int], *, must_read_to_end: bool, read_before: int
    ) -> tuple[list[tuple[int, int]], list[int | None]]:
        """Return the 64 kept pairs of an OffsetSyncStore, none if there are no syncs, and the queries translated."""
        pairs = ",".join(f"{upstream}:{downstream}" for upstream, downstream in syncs)
        kept, translated = self.ask(
            "store", str(int(must_read_to_end)), str(read_before), pairs, ",".join(map(str, queries))
        )
        places = [(int(up), int(down)) for up, down in (pair.split(":") for pair in kept.split(",") if pair)]
        assert len(places) in (0, SYNC_COUNT)
        return places, [None if each == "none" else int(each) for each in translated.split(",")]

    def rule(self, pairs: Sequence[tuple[int, int]], lag_max: int) -> list[bool]:
        """Return for each copied record whether OffsetSyncWriter tells its offsets at once."""
        (told,) = self.ask("rule", str(lag_max), ",".join(f"{upstream}:{downstream}" for upstream, downstream in pairs))
        return [each == "1" for each in told]

    def ask(self, *fields: str) -> list[str]:
        """Send one request and return the fields of its answer."""
        assert not any("\t" in field or "\n" in field for field in fields), fields
        self._to_java.write("\t".join(fields) + "\n")
        self._to_java.flush()
        answer = self._from_java.readline()
        if not answer.endswith("\n"):
            raise AssertionError("the Java process ended")
        return answer[:-1].split("\t")
