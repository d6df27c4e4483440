"""Print the values of `__cluster_metadata` as `--cluster-metadata-decoder` does: JSON, and no keys.

Constraints: a record that cannot be read is reported in its line, with Kafka's words, and the dump goes on.

Example: {"type":"NO_OP_RECORD","version":0,"data":{}}

Source: kafka.tools.DumpLogSegments.ClusterMetadataLogMessageParser, 4.0.
"""

from __future__ import annotations

import json
from typing import Any

from broker.errors import CorruptDataError
from log.metadata.json_text import record_json
from log.metadata.records import RecordFieldsError, decode_record
from log.record import Record


def metadata_payload(record: Record) -> str:
    """Return the text after "payload: " in the dump of a record."""
    try:
        return record_json(decode_record(record.value or b""))
    except RecordFieldsError as error:
        return f"Error at {record.offset}, skipping. {error.kafka_message}"
    except CorruptDataError as error:
        return f"Error at {record.offset}, skipping. {error.what}"


def payload_row(record: Record) -> dict[str, Any]:
    """Return a record's type, version and data for a JSON row, or its error."""
    try:
        row: dict[str, Any] = json.loads(record_json(decode_record(record.value or b"")))
    except CorruptDataError as error:
        return {"error": error.what}
    return row
