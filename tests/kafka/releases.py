"""Which releases of Kafka the live tests run, and how the Java sources that call them are chosen.

What it decides: the version on Maven Central that stands for a release; which Java files are compiled for it.

How
Sources stand in java/ and call classes by the names that the newest release gives them; for an older release the
names of `MOVED` are put back. What differs in more than a name stands in java/since_X_Y/: of a file that is in several
of these folders, the newest that is not newer than the release is taken.

Example: `sources(Release("4.1"))` has since_4_1/Logs.java, and neither since_4_0/Logs.java nor since_4_2/Appends.java.

Left out: releases before 3.9, whose classes differ in too much.

Source: the directories of org.apache.kafka on Maven Central.
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
"""The version that stands for a release."""

WITH_ADMIN_UTILS: Final = Release("4.0")
"""The newest release that has AdminUtils, the classic placer; later every caller uses StripedReplicaPlacer."""

WITH_TOOLS: Final = Release("4.3")
"""The oldest release of which kafka-tools is on the class path; older ones have kafka-dump-log in the broker."""

DEFAULTS: Final = (NEWEST, Release("4.0"))
"""The releases that every live test runs."""

MOVED: Final = (
    (Release("4.1"), "kafka.log.UnifiedLog", "org.apache.kafka.storage.internals.log.UnifiedLog"),
    (Release("4.3"), "org.apache.kafka.common.record.", "org.apache.kafka.common.record.internal."),
    (Release("4.3"), "kafka.tools.DumpLogSegments", "org.apache.kafka.tools.DumpLogSegments"),
)
"""Since when, the beginning of a class's name before, and its beginning since."""

SETTINGS_ONLY: Final = (Release("4.4"), ("ConfigDefs.java", "GroupConfigs.java"))
"""The release of which only the settings are printed so far, and by which files: its log manager has changed."""

_FOLDER: Final = re.compile(r"since_(\d+)_(\d+)")


def version_of(release: Release) -> str:
    """Return the version on Maven Central that stands for a release; raise UsageError where none does."""
    if release not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise UsageError(f"the live tests have no classes of release {release}; allowed are {known}")
    return VERSIONS[release]


def sources(release: Release) -> list[Path]:
    """Return the Java files to compile for a release, by name."""
    chosen = {path.name: path for path in JAVA_SOURCES.glob("*.java")}
    folders = [path for path in JAVA_SOURCES.iterdir() if _FOLDER.fullmatch(path.name)]
    for folder in sorted(folders, key=_since):
        if _since(folder) <= release:
            chosen |= {path.name: path for path in folder.glob("*.java")}
    only = SETTINGS_ONLY[1] if release >= SETTINGS_ONLY[0] else tuple(chosen)
    return [chosen[name] for name in sorted(chosen) if name in only]


def text_for(release: Release, source: str) -> str:
    """Return a Java file's text with the names that classes have in a release."""
    for since, before, after in MOVED:
        if release < since:
            source = source.replace(after, before)
    return source


def _since(folder: Path) -> Release:
    return Release(folder.name.removeprefix("since_").replace("_", "."))
