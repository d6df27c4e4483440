"""Which releases of Kafka the live tests run, and how one set of Java sources fits them all.

Sources call classes by the names that the newest release gives them; for an older one the names of `MOVED` are put
back. Lines below a comment `//@ since 4.1`, `//@ before 4.1` or both, up to `//@ end` or the next such comment, are of
these releases alone; a file whose first line is `//@ file since 4.1` or `//@ file mirror` is compiled for these alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from broker.errors import UsageError
from broker.releases import NEWEST, Release

JAVA_SOURCES: Final = Path(__file__).parent / "java"

VERSIONS: Final = {
    Release("3.9"): "3.9.2",
    Release("4.0"): "4.0.1",
    Release("4.1"): "4.1.2",
    Release("4.2"): "4.2.1",
    Release("4.3"): "4.3.1",
    Release("4.4"): "4.4.0",
}
"""The version on Maven Central that stands for a release."""

OLDEST: Final = Release("4.0")
"""The oldest release that is asked more than its settings."""

SETTINGS_ONLY: Final = ("ConfigDefs.java",)
"""What is compiled for older releases."""

WITH_ADMIN_UTILS: Final = Release("4.0")
"""The newest release that has AdminUtils, the classic placer; later every caller uses StripedReplicaPlacer."""

WITH_CONTROLLER: Final = Release("4.1")
"""The oldest release whose controller java/ControllerHistory.java can build."""

WITH_MIRROR: Final = Release("4.3")
"""The release whose MirrorMaker is asked: not of all releases is it on Maven Central's mirrors."""

DEFAULTS: Final = (NEWEST, OLDEST)
"""The releases that every live test runs."""

MOVED: Final = (
    (Release("4.1"), "kafka.log.UnifiedLog", "org.apache.kafka.storage.internals.log.UnifiedLog"),
    (Release("4.3"), "org.apache.kafka.common.record.", "org.apache.kafka.common.record.internal."),
    (Release("4.3"), "kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments"),
    (Release("4.4"), "org.apache.kafka.common.utils.", "org.apache.kafka.common.utils.internals."),
)
"""Since when, the beginning of a class's name before, and its beginning since."""

_MARK: Final = re.compile(r"\s*//@ (?:file )?(.*)")
_BOUND: Final = re.compile(r"(since|before) (\S+)")


def version_of(release: Release) -> str:
    """Return the version on Maven Central that stands for a release; raise UsageError where none does."""
    if release not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise UsageError(f"the live tests have no classes of release {release}; allowed are {known}")
    return VERSIONS[release]


def sources(release: Release) -> dict[str, str]:
    """Return the Java files to compile for a release: name and text."""
    texts = {path.name: path.read_text("utf-8") for path in sorted(JAVA_SOURCES.glob("*.java"))}
    if release < OLDEST:
        return {name: texts[name] for name in SETTINGS_ONLY}
    return {
        name: text_for(release, text)
        for name, text in texts.items()
        if not text.startswith("//@ file") or _holds(text.splitlines()[0], release)
    }


def text_for(release: Release, source: str) -> str:
    """Return a Java file's text with the lines of a release and the names that classes have in it."""
    lines, is_kept = [], True
    for line in source.splitlines(keepends=True):
        if _MARK.match(line):
            is_kept = line.startswith("//@ file") or _holds(line, release)
        elif is_kept:
            lines.append(line)
    text = "".join(lines)
    for since, before, after in MOVED:
        if release < since:
            text = text.replace(after, before)
    return text


def _holds(mark: str, release: Release) -> bool:
    """Return whether what follows a mark is of a release."""
    if mark.rstrip().endswith("mirror"):
        return release == WITH_MIRROR
    bounds = _BOUND.findall(mark)
    return all((release >= Release(name)) == (kind == "since") for kind, name in bounds)
