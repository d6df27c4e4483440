"""Write a folder of golden vectors printed by a release: placement/*.json and log.tar.xz.

Constraints: the same release, Java and seed give the same bytes, on every run.

How: inputs are those of the checked-in vectors; a case keeps its name and its input, and what it expects is asked anew.
With a seed the cases of that seed are added to every file and to the archive. Files have a case a line, ASCII only. The
classic placer is asked of the newest release that has it, and its file names that one.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from broker.releases import Release
from tests.golden.files import SCHEMA_VERSION
from tests.golden.log.cases import CASE_NAME, case_folders, unpacked
from tests.golden.runners import Rows, in_form_of
from tests.kafka.draws import random_cases
from tests.kafka.golden.logs import printed
from tests.kafka.golden.random_logs import random_log_cases
from tests.kafka.jvm import Json, KafkaJvm, KafkaThrewError
from tests.kafka.releases import WITH_ADMIN_UTILS

GIVEN: Final = Path(__file__).parents[2] / "golden" / "placement"
"""Where the inputs are read: the files that are checked in."""
ROWS_SHOWN_MAX: Final = 1_000
"""How many partitions are written row by row; a digest stands for more."""
CLASSIC: Final = "admin_utils"
"""The algorithm that only releases up to 4.0 have."""
ARCHIVE: Final = "log.tar.xz"
GIVEN_ARCHIVE: Final = GIVEN.parent / ARCHIVE
FOLDER_IN_ARCHIVE: Final = "cases"
Tell = Callable[[str], None]


def write_placement(
    build_directory: Path, release: Release, out: Path, *, seed: int | None = None, tell: Tell = lambda _: None
) -> None:
    """Write the golden files of placement into a folder that is made; `tell` gets a line for each."""
    with KafkaJvm.start(build_directory, release) as kafka:
        out.mkdir(parents=True)
        for algorithm in algorithms():
            if algorithm == CLASSIC and release > WITH_ADMIN_UTILS:
                continue
            tell(_write_file(kafka, algorithm, out, seed))
    if release > WITH_ADMIN_UTILS:
        with KafkaJvm.start(build_directory, WITH_ADMIN_UTILS) as kafka:
            tell(f"{_write_file(kafka, CLASSIC, out, seed)}, the newest release that has AdminUtils")


def _write_file(kafka: KafkaJvm, algorithm: str, out: Path, seed: int | None) -> str:
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
        KafkaJvm.start(build_directory, release) as kafka,
        unpacked(GIVEN_ARCHIVE) as given,
        tempfile.TemporaryDirectory(prefix="golden-") as name,
    ):
        made = Path(name)
        for old, case in _log_cases(given, seed):
            folder = made / FOLDER_IN_ARCHIVE / case["case"]
            try:
                content = printed(kafka, case, old, folder)
            except KafkaThrewError as unended:
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


def algorithms() -> list[str]:
    """Return the algorithms of which there are files, by name."""
    return sorted(path.stem for path in GIVEN.glob("*.json"))


def given_cases(algorithm: str) -> list[Mapping[str, Json]]:
    """Return name and input of each case of the file that is checked in."""
    document = json.loads((GIVEN / f"{algorithm}.json").read_text("utf-8"))
    return [{"name": case["name"], "input": case["input"]} for case in document["cases"]]


def answered(kafka: KafkaJvm, algorithm: str, case: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a case with Kafka's answer."""
    answer = dict(kafka.ask(algorithm, case["input"]))
    expected = answer.get("expected")
    if expected is not None:
        if "calls" in expected:
            answer["expected"] = {**expected, "calls": [digested(call, 0) for call in expected["calls"]]}
        else:
            answer["expected"] = digested(expected, expected.get("first_partition", 0))
    return {"name": case["name"], "input": case["input"], **answer}


def digested(answer: Mapping[str, Json], first_partition: int) -> Mapping[str, Json]:
    """Return an answer with a digest for its matrix, where that is large."""
    rows = answer.get("replicas", ())
    if len(rows) <= ROWS_SHOWN_MAX:
        return answer
    return in_form_of({"sha256": ""}, {**answer, "replicas": Rows(np.array(rows, np.int32), first_partition)})


def envelope(algorithm: str, source: str, cases: Iterable[Mapping[str, Json]]) -> str:
    """Return the text of a golden file."""
    head = compact({"algorithm": algorithm, "schema_version": SCHEMA_VERSION, "source": source})
    lines = ",\n".join(map(compact, cases))
    return f'{head[:-1]},"cases":[\n{lines}\n]}}\n'


def compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
