"""Kafka's own classes behind a pipe: one Java process that answers one call after another.

What answers is Kafka's code, unmodified, of the release asked for, from the jars that java/pom.xml names. Where Java,
its compiler, Maven or the jars cannot be had, it says so at once. Maven, first offline, resolves the class path; javac
compiles the files that `tests.kafka.releases` chooses, once for a build directory and release. java/Oracle.java, which
names the calls, reads a JSON object a line and prints one a line.

    with KafkaJvm.start(build_directory, Release("4.0")) as kafka:
        kafka.call("producer_key_partition", key_hex="00", partitions=7)
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import attrs

from broker.releases import NEWEST, Release
from tests.kafka.releases import JAVA_SOURCES, WITH_MIRROR, sources, version_of

Json: TypeAlias = Any

OFFLINE_SECONDS_MAX: Final = 60  # A warm Maven takes two seconds; a cold disk and a busy machine are allowed for.
ONLINE_SECONDS_MAX: Final = 600  # The first time, some 40 jars come from the network.
COMPILE_SECONDS_MAX: Final = 180
OPTIONS: Final = (
    "-Xmx6g",  # The largest groups measured take some gigabytes of Java's objects.
    # Without the option, Java leaves out the message of an exception that its compiler finds to be thrown often.
    "-XX:-OmitStackTraceInFastThrow",
)


class KafkaUnavailableError(Exception):
    """Kafka's classes cannot be run here; the message says what is missing."""


class KafkaThrewError(Exception):
    """Kafka threw: the Java class and the message, None where it has none."""

    def __init__(self, java_class: str, message: str | None) -> None:
        self.java_class = java_class
        super().__init__(f"{java_class}: {message}")


@attrs.frozen
class Dumped:
    """What kafka-dump-log printed to both streams, and the class and message of an exception that ended it."""

    out: str
    err: str
    thrown: str | None = None
    message: str | None = attrs.field(default=None, eq=False)


class KafkaJvm:
    """A running Java process with Kafka's classes. Use it as a context manager, from one thread."""

    def __init__(self, process: subprocess.Popen[str], release: Release) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.release = release
        self._process, self._to_java, self._from_java = process, process.stdin, process.stdout

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> Self:
        """Start Java; raise KafkaUnavailableError, with the reason, where that cannot be had."""
        java, *class_path = java_command(build_directory, release)
        command = [java, *OPTIONS, *class_path, "Oracle"]
        pipe = subprocess.PIPE
        return cls(
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="ascii"), release
        )

    def ask(self, call: str, given: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return `expected`, or `expected_error`, of the case whose input is `given`."""
        self._to_java.write(json.dumps({"call": call, "input": given}) + "\n")
        self._to_java.flush()
        line = self._from_java.readline()
        if not line:
            raise AssertionError("the Java process ended; run it by hand to see why")
        answer: dict[str, Json] = json.loads(line)
        return answer

    def call(self, call: str, **given: Json) -> Json:
        """Return what Kafka answered; raise KafkaThrewError where that is an exception."""
        answer = self.ask(call, given)
        if "expected" in answer:
            return answer["expected"]
        error = answer["expected_error"]
        raise KafkaThrewError(error["class"], error["message"])

    def source(self) -> str:
        """Return what the `source` of golden files says that this process printed."""
        versions = self.call("versions")
        assert versions["kafka"] == version_of(self.release), versions
        return f"Apache Kafka {versions['kafka']}, OpenJDK {versions['java']}"

    def dump(self, files: Sequence[Path], *options: str) -> Dumped:
        """Run kafka-dump-log over `files`."""
        return Dumped(**self.call("dump", arguments=["--files", ",".join(map(str, files)), *options]))

    def program(self, case: Mapping[str, Json], folder: Path) -> dict[str, Json]:
        """Run the operations of `case` below `folder`; return it as a golden case, closed files kept in `folder`."""
        answer: dict[str, Json] = self.call("log", **case, folder=str(folder))
        del answer["folder"]
        return {**answer, "source": version_of(self.release)}

    def opened(self, directory: Path, config: Mapping[str, Json], **how: Json) -> dict[str, Json]:
        """Open and close a partition's directory with UnifiedLog; return the golden `state` it came to."""
        asked = {"clean": False, "recoveryPoint": 0, "nowMs": 0, **how}
        state: dict[str, Json] = self.call("open", directory=str(directory), config=dict(config), **asked)["state"]
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._to_java.close()  # The end of the input ends the program.
        self._from_java.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def java_command(build_directory: Path, release: Release = NEWEST) -> list[str]:
    """Find a release's jars, compile our few Java files below `build_directory`, and return how Java is started.

    What was compiled there before is taken again. Raises KafkaUnavailableError, with the reason, when any of that
    cannot be had.
    """
    java, javac, maven = (tool(name) for name in ("java", "javac", "mvn"))
    built = build_directory / version_of(release)
    class_path_file, classes, compiled = built / "class-path.txt", built / "classes", built / "compiled"
    if not compiled.exists():
        classes.mkdir(parents=True, exist_ok=True)
        _resolve(maven, release, class_path_file)
        texts = built / "sources"
        texts.mkdir(exist_ok=True)
        for name, text in sources(release).items():
            (texts / name).write_text(text, "utf-8")
        files = sorted(map(str, texts.iterdir()))
        class_path = class_path_file.read_text().strip()
        _run([javac, "-nowarn", "-cp", class_path, "-d", str(classes), *files], COMPILE_SECONDS_MAX)
        compiled.touch()
    return [java, "-cp", f"{classes}:{class_path_file.read_text().strip()}"]


def _resolve(maven: str, release: Release, class_path_file: Path) -> None:
    """Let Maven write the class path of a release into a file."""
    words = [f"-Dkafka.version={version_of(release)}", *(["-Pmirror"] if release == WITH_MIRROR else [])]
    write_class_path(maven, JAVA_SOURCES / "pom.xml", words, class_path_file)


def write_class_path(maven: str, pom: Path, words: Sequence[str], class_path_file: Path) -> None:
    """Let Maven, offline if it can, write the class path of a project into a file."""
    goal = ["-B", "-q", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={class_path_file}", *words]
    try:
        _run([maven, "-o", *goal], OFFLINE_SECONDS_MAX)
    except KafkaUnavailableError:
        _run([maven, *goal], ONLINE_SECONDS_MAX)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise KafkaUnavailableError(f"{name} is not on the PATH")
    return found


def _run(command: list[str], seconds_max: int) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise KafkaUnavailableError(f"{command[0]} took longer than {seconds_max} seconds") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise KafkaUnavailableError(f"{command[0]} failed: {said[0] if said else f'exit status {done.returncode}'}")
