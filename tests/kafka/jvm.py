"""Kafka's own placers behind a pipe: one Java process that answers thousands of requests.

What it decides: nothing. It lets the tests ask released Kafka classes what they would do.

Goals, most important first
1. What answers is Kafka's code, unmodified, of the release asked for, from the jars that java/pom.xml names.
2. Where Java, its compiler, Maven or the jars cannot be had, it says so at once and does not hang.
3. Fast enough for a hundred thousand random inputs: one process, one compact binary exchange each.

Constraints: no user of the library needs any of this. Nothing is written but into the
build directory given and Maven's own local repository.

How
Maven, first offline, resolves the class path; the system's javac compiles the files that
`tests.kafka.releases` chooses, once for a build directory and release; java/Oracle.java reads
requests from standard input. Numbers are big-endian, strings are counted UTF-16 units, as
java/Wire.java says.

Example:

    with KafkaJvm.start(build_directory, release=Release("4.0")) as kafka:
        reply = kafka.classic(brokers, spec, fixed_start_index=0, seed=0)

Left out: a broker. These are calls of single classes. The classic placer is in releases up to 4.0 alone.

Source: java.io.DataInput for the encoding; the classes called are named in java/Placers.java.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Generic, Self, TypeAlias, TypeVar

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.releases import NEWEST, Release
from placement.spec import PlacementSpec
from tests.kafka.releases import JAVA_SOURCES, WITH_TOOLS, sources, text_for, version_of

OFFLINE_SECONDS_MAX: Final = 60  # A warm Maven takes two seconds; a cold disk and a busy machine are allowed for.
ONLINE_SECONDS_MAX: Final = 600  # The first time, some 40 jars come from the network.
COMPILE_SECONDS_MAX: Final = 180


class KafkaUnavailableError(Exception):
    """Kafka's classes cannot be run here; the message says what is missing."""


@attrs.frozen
class KafkaError:
    """An exception thrown by Kafka: the Java class and the message, None where it has none."""

    java_class: str
    message: str | None


Placed: TypeAlias = Int32Array | KafkaError


@attrs.frozen
class Versions:
    """What answers: the release of Kafka and the Java that runs it."""

    kafka: str
    java: str
    virtual_machine: str


def java_command(build_directory: Path, release: Release = NEWEST) -> list[str]:
    """Find a release's jars, compile our few Java files below `build_directory`, and return how Java is started.

    What was compiled there before is taken again. Raises KafkaUnavailableError, with the reason, when any of that
    cannot be had.
    """
    java, javac, maven = (_tool(name) for name in ("java", "javac", "mvn"))
    version = version_of(release)
    built = build_directory / version
    class_path_file, classes, compiled = built / "class-path.txt", built / "classes", built / "compiled"
    if not compiled.exists():
        classes.mkdir(parents=True, exist_ok=True)
        tools = ["-Ptools"] if release >= WITH_TOOLS else []
        class_path_of(maven, JAVA_SOURCES / "pom.xml", class_path_file, f"-Dkafka.version={version}", *tools)
        texts = built / "sources"
        for path in sources(release):
            copy = texts / path.name
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text_for(release, path.read_text("utf-8")), "utf-8")
        files = sorted(map(str, texts.iterdir()))
        _run(
            [javac, "-nowarn", "-cp", class_path_file.read_text().strip(), "-d", str(classes), *files],
            COMPILE_SECONDS_MAX,
        )
        compiled.touch()
    return [java, "-cp", f"{classes}:{class_path_file.read_text().strip()}"]


Sent = TypeVar("Sent", bytes, str)


class JavaProcess(Generic[Sent]):
    """A running Java process that answers what it is asked. Use it as a context manager, from one thread."""

    def __init__(self, process: subprocess.Popen[Sent], release: Release = NEWEST) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.release: Release = release
        self._process: subprocess.Popen[Sent] = process
        self._to_java: IO[Sent] = process.stdin
        self._from_java: IO[Sent] = process.stdout

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


class KafkaJvm(JavaProcess[bytes]):
    """A running Java process with Kafka's classes. Use it as a context manager, from one thread."""

    @classmethod
    def start(cls, build_directory: Path, release: Release = NEWEST) -> KafkaJvm:
        """Find the jars of a release, compile our few Java files below `build_directory`, and start Java.

        Raises KafkaUnavailableError, with the reason, when any of that cannot be had.
        """
        command = [*java_command(build_directory, release), "Oracle"]
        return cls(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE), release)

    def versions(self) -> Versions:
        """Return which Kafka and which Java answer."""
        self._send(b"V")
        return Versions(*(self._string() or "unknown" for _ in range(3)))

    def classic(
        self, brokers: Sequence[BrokerView], spec: PlacementSpec, *, fixed_start_index: int, seed: int
    ) -> tuple[Placed, int]:
        """Return what AdminUtils.assignReplicasToBrokers gives, and the generator's `nextInt()` after it; up to 4.0.

        The generator inside AdminUtils is seeded with `seed` before; it is drawn from if the index is negative.
        """
        numbers = (spec.partition_count, spec.replication_factor, fixed_start_index, spec.start_partition)
        self._send(b"C" + struct.pack(">q", seed) + _brokers(brokers) + struct.pack(">4i", *numbers))
        return self._placed(), self._int()

    def rack_alternated(self, brokers: Sequence[BrokerView]) -> list[int]:
        """Return AdminUtils.getRackAlternatedBrokerList; every broker needs a rack."""
        self._send(b"A" + _brokers(brokers))
        return self._ints()

    def striped(
        self, brokers: Sequence[BrokerView], specs: Sequence[PlacementSpec], *, seed: int
    ) -> tuple[list[Placed], int]:
        """Return StripedReplicaPlacer's answer to each of `specs` on one generator, and its `nextInt()` after."""
        calls = b"".join(
            struct.pack(">3i", spec.start_partition, spec.partition_count, spec.replication_factor) for spec in specs
        )
        self._send(b"S" + struct.pack(">q", seed) + _brokers(brokers) + struct.pack(">i", len(specs)) + calls)
        return [self._placed() for _ in specs], self._int()

    def random(self, seed: int, draws: Sequence[tuple[str, int]]) -> list[list[int]]:
        """Return the results of draws on `java.util.Random(seed)`.

        A draw is ("n", 0) for nextInt(), ("b", bound) for nextInt(bound), ("s", n) for a shuffle of 0..n-1.
        """
        body = b"".join(kind.encode() + struct.pack(">i", argument) for kind, argument in draws)
        self._send(b"R" + struct.pack(">qi", seed, len(draws)) + body)
        return [self._ints() for _ in draws]

    def map_order(self, keys: Sequence[str | None]) -> list[int]:
        """Return the order of a HashMap filled with `keys` one by one, as places among the distinct keys."""
        self._send(b"M" + struct.pack(">i", len(keys)) + b"".join(map(_text, keys)))
        return self._ints()

    def set_copy_order(self, keys: Sequence[str | None]) -> list[int]:
        """Return the order of `new HashSet<>(keys)`, as places among the distinct keys."""
        self._send(b"H" + struct.pack(">i", len(keys)) + b"".join(map(_text, keys)))
        return self._ints()

    def cpu_ns(self, placer: str, brokers: Sequence[BrokerView], *, partition_count: int, factor: int) -> int:
        """Return the CPU nanoseconds of one call's thread, the result discarded; `placer` is "classic" or "striped"."""
        kind = {"classic": b"C", "striped": b"S"}[placer]
        self._send(b"B" + kind + _brokers(brokers) + struct.pack(">2i", partition_count, factor))
        nanoseconds, _checksum = struct.unpack(">2q", self._read(16))
        return int(nanoseconds)

    def _send(self, request: bytes) -> None:
        self._to_java.write(request)
        self._to_java.flush()

    def _read(self, count: int) -> bytes:
        answer = self._from_java.read(count)
        if len(answer) != count:
            raise AssertionError("the Java process ended; its trace is on standard error")
        return answer

    def _int(self) -> int:
        return int(struct.unpack(">i", self._read(4))[0])

    def _ints(self) -> list[int]:
        count = self._int()
        return list(struct.unpack(f">{count}i", self._read(4 * count)))

    def _string(self) -> str | None:
        count = self._int()
        return None if count < 0 else self._read(2 * count).decode("utf-16-be", "surrogatepass")

    def _placed(self) -> Placed:
        if self._read(1) == b"\x01":
            return KafkaError(self._string() or "", self._string())
        row_count, width = self._int(), self._int()
        values = np.frombuffer(self._read(4 * row_count * width), dtype=">i4")
        return values.astype(np.int32).reshape(row_count, width)


def _text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">i", -1)
    units = value.encode("utf-16-be", "surrogatepass")
    return struct.pack(">i", len(units) // 2) + units


def _brokers(brokers: Sequence[BrokerView]) -> bytes:
    each = (struct.pack(">i", one.id) + _text(one.rack) + struct.pack(">?", one.fenced) for one in brokers)
    return struct.pack(">i", len(brokers)) + b"".join(each)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise KafkaUnavailableError(f"{name} is not on the PATH")
    return found


def class_path_of(maven: str, pom: Path, answer: Path, *arguments: str) -> str:
    """Let Maven, offline if it can, write the class path of a pom into `answer`, and return it."""
    answer.parent.mkdir(parents=True, exist_ok=True)
    goal = ["-B", "-q", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={answer}", *arguments]
    try:
        _run([maven, "-o", *goal], OFFLINE_SECONDS_MAX)
    except KafkaUnavailableError:
        _run([maven, *goal], ONLINE_SECONDS_MAX)
    return answer.read_text().strip()


def _run(command: list[str], seconds_max: int) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise KafkaUnavailableError(f"{command[0]} took longer than {seconds_max} seconds") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise KafkaUnavailableError(f"{command[0]} failed: {said[0] if said else f'exit status {done.returncode}'}")
