"""Keep a report in a folder at a URI that only Spark's file systems reach, such as s3a, abfs or hdfs.

How: a folder of this machine mirrors the names at the URI, so that one rule decides what may be written
(tables/answers.py) and one program writes the page. Tables are Spark's own, and are copied here for the page; the page
and its files are copied there when they are done.

Source: Hadoop 3.4 FileSystem, through the Java gateway of a classic session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
from py4j.protocol import Py4JJavaError

from broker.errors import InputError
from spark_analysis.tables.answers import ANSWER_NAME
from spark_analysis.tables.place import TABLES_FOLDER
from spark_analysis.tables.scan import WHOLE_NAME
from spark_analysis.tables.schemas import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER: Final = -1


@attrs.frozen
class UriFolder:
    """Mirror the folder at a URI in the folder `desk` of this machine."""

    uri: str
    desk: Path
    _path: Any
    """Hadoop's class Path."""
    _files: Any
    """Hadoop's FileSystem of the URI."""

    def fetch_tables(self) -> None:
        """Copy the tables here: of that of partitions one file, as the page asks only whether there are any."""
        for table in self._sizes(TABLES_FOLDER):
            sizes = self._sizes(f"{TABLES_FOLDER}/{table}")
            largest = max(sizes, key=sizes.__getitem__, default="")
            for name in sizes:
                if name[0] != "." and (table != PARTITIONS.name or name in (largest, WHOLE_NAME)):
                    self._fetch(f"{TABLES_FOLDER}/{table}/{name}")

    def claim(self) -> None:
        """Copy the list of what the run will write, so that a killed run can be repeated."""
        self._send(ANSWER_NAME)

    def send(self, *folders: str) -> None:
        """Copy the page and the files beside it to their places; `folders` of an earlier run are replaced whole."""
        for name in folders:
            self._files.delete(self._at(name), True)
        for place in sorted(self.desk.rglob("*")):
            name = str(place.relative_to(self.desk))
            if place.is_file() and place.stat().st_size and not name.startswith(f"{TABLES_FOLDER}/"):
                self._send(name)

    def mirror(self) -> None:
        """Make an empty file or folder of each name that is there, and copy the list of what an earlier run left."""
        for name, size_bytes in self._sizes("").items():
            if size_bytes == FOLDER:
                (self.desk / name).mkdir()
            elif name == ANSWER_NAME:
                self._fetch(name)
            else:
                (self.desk / name).touch()

    def give_up(self) -> None:
        """Remove the folder of a run that has written nothing but its claim."""
        if list(self._sizes("")) == [ANSWER_NAME]:
            self._files.delete(self._at(""), True)

    def _send(self, name: str) -> None:
        self._files.copyFromLocalFile(False, True, self._here(name), self._at(name))

    def _fetch(self, name: str) -> None:
        (self.desk / name).parent.mkdir(parents=True, exist_ok=True)
        self._files.copyToLocalFile(False, self._at(name), self._here(name), True)

    def _here(self, name: str) -> Any:
        return self._path(f"file://{self.desk}/{name}")

    def _at(self, name: str) -> Any:
        return self._path(f"{self.uri}/{name}".rstrip("/"))

    def _sizes(self, name: str) -> dict[str, int]:
        """Return the sizes of what is in a folder by name, `FOLDER` for folders."""
        place = self._at(name)
        found = self._files.listStatus(place) if self._files.exists(place) else ()
        return {
            str(status.getPath().getName()): FOLDER if status.isDirectory() else int(status.getLen())
            for status in found
        }


def remove_folder(spark: SparkSession, uri: str) -> None:
    """Remove a folder."""
    path, files = _file_system(spark, uri)
    files.delete(path(uri), True)


def _file_system(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """Return Hadoop's class Path and its FileSystem of a URI."""
    classic = cast("Any", spark)
    path = classic._jvm.org.apache.hadoop.fs.Path
    return path, path(uri).getFileSystem(classic._jsparkSession.sessionState().newHadoopConf())


@contextlib.contextmanager
def uri_folder(spark: SparkSession, uri: str) -> Iterator[UriFolder]:
    """Open the folder at a URI; raise InputError if the session cannot reach it, or it holds something else.

    A Connect session, whose server alone has the file system, was refused before it began.
    """
    with TemporaryDirectory(prefix="brokerside-") as name:
        try:
            folder = UriFolder(uri, Path(name), *_file_system(spark, uri))
            folder.mirror()
        except Py4JJavaError as error:
            said = cast("Any", error).java_exception.getMessage()
            raise InputError(f"Spark cannot write there: {said}", source=uri) from None
        try:
            yield folder
        except InputError as error:
            source = error.source.replace(name, uri)
            raise InputError(error.what, source=source, line=error.line, value=error.value) from None
        finally:
            folder.give_up()
