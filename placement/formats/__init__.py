"""Read and write the texts and JSON of Kafka's own tools and their peers, one module per format."""

from __future__ import annotations

from placement.formats.parsed import ParsedDump, Reject
from placement.formats.racks import Racks, read_racks
from placement.formats.read import FORMATS, read_dump
from placement.formats.reassign import write_reassignment

__all__ = ("FORMATS", "ParsedDump", "Racks", "Reject", "read_dump", "read_racks", "write_reassignment")
