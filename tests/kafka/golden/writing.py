"""Write a folder of golden vectors printed by a release: placement/*.json and log.tar.xz.

Constraints: the same release, Java and seed give the same bytes, on every run.

How: inputs are those of the checked-in vectors. With a seed the cases of that seed are added to every file and to the
archive. The classic placer is asked of the newest release that has it, and its file names that one.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from broker.releases import Release
from tests.golden.log.cases import CASE_NAME, case_folders, unpacked
from tests.kafka.golden.jvm import GoldenJvm, Json
from tests.kafka.golden.logs import CannotEndError, printed
from tests.kafka.golden.placement import CLASSIC, GIVEN, algorithms, answered, envelope, given_cases
from tests.kafka.golden.random_logs import random_log_cases
from tests.kafka.golden.random_placement import random_cases
from tests.kafka.releases import WITH_ADMIN_UTILS

ARCHIVE: Final = "log.tar.xz"
GIVEN_ARCHIVE: Final = GIVEN.parent / ARCHIVE
FOLDER_IN_ARCHIVE: Final = "cases"
Tell = Callable[[str], None]


def write_placement(
    build_directory: Path, release: Release, out: Path, *, seed: int | None = None, tell: Tell = lambda _: None
) -> None:
    """Write the golden files of placement into a folder that is made; `tell` gets a line for each."""
    with GoldenJvm.start(build_directory, release) as kafka:
        out.mkdir(parents=True)
        for algorithm in algorithms():
            if algorithm == CLASSIC and release > WITH_ADMIN_UTILS:
                continue
            tell(_write_file(kafka, algorithm, out, seed))
    if release > WITH_ADMIN_UTILS:
        with GoldenJvm.start(build_directory, WITH_ADMIN_UTILS) as kafka:
            tell(f"{_write_file(kafka, CLASSIC, out, seed)}, the newest release that has AdminUtils")


def _write_file(kafka: GoldenJvm, algorithm: str, out: Path, seed: int | None) -> str:
    cases = [answered(kafka, algorithm, case) for case in given_cases(algorithm)]
    if seed is not None:
        cases += [answered(kafka, algorithm, case) for case in random_cases(kafka, algorithm, seed)]
    source = kafka.source()
    (out / f"{algorithm}.json").write_text(envelope(algorithm, source, cases), "ascii")
    return f"{algorithm}.json: {len(cases)} cases of {source}"


def write_logs(
    build_directory: Path, release: Release, out: Path, *, seed: int | None = None, tell: Tell = lambda _: None
) -> None:
    """Write the archive of log cases into a folder; `tell` gets a line for it and for each program that has no end."""
    with (
        GoldenJvm.start(build_directory, release) as kafka,
        unpacked(GIVEN_ARCHIVE) as given,
        tempfile.TemporaryDirectory(prefix="golden-") as name,
    ):
        made = Path(name)
        for old, case in _log_cases(given, seed):
            folder = made / FOLDER_IN_ARCHIVE / case["case"]
            try:
                content = printed(kafka, case, old, folder)
            except CannotEndError as unended:
                if seed is None:
                    raise
                tell(f"{case['case']} is left out, as Kafka has no answer: {unended}")
                shutil.rmtree(folder)
                continue
            (folder / CASE_NAME).write_text(case_text(content), "ascii")
        (out / ARCHIVE).write_bytes(archived(made))
        tell(f"{ARCHIVE}: {len(case_folders(made))} cases of {kafka.source()}")


def cases_by_name(archive: Path) -> dict[str, Mapping[str, Json]]:
    """Return the cases of an archive by name."""
    with unpacked(archive) as folder:
        return {path.name: _case(path) for path in case_folders(folder)}


def _case(folder: Path) -> Mapping[str, Json]:
    case: Mapping[str, Json] = json.loads((folder / CASE_NAME).read_text("utf-8"))
    return case


def _log_cases(given: Path, seed: int | None) -> Iterator[tuple[Path, Mapping[str, Json]]]:
    """Yield cases with the folder that has their files: those given, and those of the seed."""
    folders = {folder.name: folder for folder in case_folders(given)}
    cases = {name: _case(folder) for name, folder in folders.items()}
    yield from ((folders[name], case) for name, case in cases.items())
    if seed is not None:
        yield from ((folders.get(name, given), case) for name, case in random_log_cases(seed, cases))


def case_text(case: Mapping[str, Json]) -> str:
    """Return a case as text: a key a line, and an entry a line of the lists that are operations or rows."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_value(value)}" for name, value in case.items()) + "\n}\n"


def _value(value: Json) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return "[\n" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in value) + "\n]"
    return json.dumps(value, separators=(",", ":"))


def archived(folder: Path) -> bytes:
    """Return the files below a folder as a *.tar.xz that depends on their names and contents alone."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                content = path.read_bytes()
                member.size, member.mode = len(content), 0o644
                archive.addfile(member, io.BytesIO(content))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)
