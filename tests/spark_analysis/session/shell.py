"""Run a script of a README in a shell of its own, with everything that it starts ended when the block ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

from tests.architecture.readme import blocks
from tests.spark_analysis.processes import wait_until

ROOT = Path(__file__).resolve().parents[3]
SCRIPT_SECONDS_MAX = (
    900  # A minute and a half on an idle machine, as kernels are compiled anew; ten times that on a busy one.
)


def free_port() -> int:
    """A port of this machine that nobody uses; skip the test where there is none."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return int(server.getsockname()[1])
    except OSError as error:
        pytest.skip(f"no port can be had: {error}")


def readme_blocks(section: str, ports: Mapping[str, int]) -> list[str]:
    """The blocks of a section of spark_analysis/README.md, with ports that are free in place of its own."""
    text = (ROOT / "spark_analysis" / "README.md").read_text(encoding="utf-8")
    found = [block.text for block in blocks(text) if block.section.endswith(f" {section}")]
    assert found, f"there is no section {section!r}"
    for named, port in ports.items():
        assert any(named in block for block in found), f"no block names port {named}"
        found = [block.replace(named, str(port)) for block in found]
    return found


@attrs.frozen
class Shell:
    """A shell that runs a script in `folder`."""

    process: subprocess.Popen[bytes]
    folder: Path

    def printed(self) -> str:
        """What the script and all that it started have printed so far."""
        return (self.folder / "printed.txt").read_text(encoding="utf-8", errors="replace")

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def commands(self) -> dict[int, str]:
        """The commands of the processes that the script has started and that still run."""
        words = ["ps", "-A", "-ww", "-o", "pid=,pgid=,stat=,command="]
        listed = subprocess.run(words, capture_output=True, text=True, check=True)
        found = (line.split(maxsplit=3) for line in listed.stdout.splitlines())
        group = str(self.process.pid)
        return {int(one[0]): one[3] for one in found if one[1] == group and not one[2].startswith("Z") and one[3:]}

    def status(self) -> int:
        """The script's exit status, once it has ended."""
        return self.process.wait(SCRIPT_SECONDS_MAX)


@contextmanager
def started(script: str, folder: Path, cache: Path) -> Iterator[Shell]:
    """A script that runs in `folder` while the block does, with our packages, this interpreter and the tests' files.

    Kernels are compiled into `cache`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK", "NUMBA"))}
    (folder / "temporary").mkdir()
    (folder / "tests").symlink_to(ROOT / "tests")
    environment = kept | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")])),
        "TMPDIR": str(folder / "temporary"),
        "XDG_CACHE_HOME": str(cache),
    }
    with (folder / "printed.txt").open("wb") as out:
        # A group of its own, in which all is that has to be ended.
        process = subprocess.Popen(
            ["bash", "-e", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        shell = Shell(process, folder)
        try:
            yield shell
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            wait_until(lambda: not shell.commands())
