"""Print metadata records as the JSON of Kafka's tools.

Source: org.apache.kafka.message.JsonConverterGenerator, 4.0, and Jackson 2.16; Double.toString of Java 17 up to its
rare texts that are longer than they need to be.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from broker.errors import CorruptDataError
from broker.wire.fields import Field, Fields, Kind
from log.metadata.records import (
    CONTROL_SCHEMAS,
    ControlRecord,
    MetadataRecord,
    RecordFieldsError,
    decode_record,
    version_read,
)
from log.metadata.schemas import SCHEMAS, RecordType
from log.record import Record

HIDDEN: Final = '"(hidden)"'
_SECRET_SETTING: Final = re.compile(r"password|passphrase|secret|jaas|credential|token|\.key$", re.IGNORECASE)
_SCRAM_SECRETS: Final = ("salt", "storedKey", "serverKey")


def secrets_of(record: MetadataRecord) -> Mapping[str, str]:
    """Return the placeholder of each secret field by name: SCRAM credentials and values of secret settings."""
    if record.type is RecordType.USER_SCRAM_CREDENTIAL_RECORD:
        return dict.fromkeys(_SCRAM_SECRETS, HIDDEN)
    is_set = record.type is RecordType.CONFIG_RECORD and record.data["value"] is not None
    return {"value": HIDDEN} if is_set and _SECRET_SETTING.search(record.data["name"]) else _NO_TEXTS


def metadata_payload(record: Record, *, hides_secrets: bool = False) -> str:
    """Return the text after "payload: " in the dump of a record."""
    try:
        return record_json(decode_record(record.value or b""), hides_secrets=hides_secrets)
    except RecordFieldsError as error:
        return f"Error at {record.offset}, skipping. {error.kafka_message}"
    except CorruptDataError as error:
        return f"Error at {record.offset}, skipping. {error.what}"


def payload_row(record: Record, *, hides_secrets: bool = False) -> dict[str, Any]:
    """Return a record's type, version and data for a JSON row, or its error."""
    try:
        row: dict[str, Any] = json.loads(record_json(decode_record(record.value or b""), hides_secrets=hides_secrets))
    except CorruptDataError as error:
        return {"error": error.what}
    return row


_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord(char): escape
    for char, escape in {
        '"': '\\"',
        "\\": "\\\\",
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
    }.items()
}
"""What Jackson does not write as it is."""
_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})
_PLAIN_EXPONENT_MIN: Final = -3  # Java writes 0.001 to below 10,000,000 without an exponent.
_PLAIN_EXPONENT_MAX: Final = 6


def record_json(record: MetadataRecord, *, hides_secrets: bool = False) -> str:
    """Return the record as one line of JSON: type, version, data."""
    texts = secrets_of(record) if hides_secrets else _NO_TEXTS
    data = fields_json(SCHEMAS[record.type].fields, record.version, record.data, texts)
    return f'{{"type":"{record.type.name}","version":{record.version},"data":{data}}}'


def control_json(record: ControlRecord) -> str:
    """Return the fields of a control record that has a schema as one line of JSON."""
    schema = CONTROL_SCHEMAS[record.type]
    return fields_json(schema.fields, version_read(schema, record.data["version"]), record.data)


def fields_json(fields: tuple[Field, ...], version: int, values: Fields, texts: Mapping[str, str] = _NO_TEXTS) -> str:
    """Return the fields of a structure as JSON; `texts` has, by name, the JSON of fields printed otherwise."""
    shown = (
        f'"{field.name}":{texts.get(field.name) or value_json(field, version, values[field.name])}'
        for field in fields
        if field.since <= version
        and (field.until is None or version <= field.until)
        and _is_shown(field, values[field.name])
    )
    return "{" + ",".join(shown) + "}"


def _is_shown(field: Field, value: Any) -> bool:
    """Return whether a field is printed: a tagged one only if it is not its default.

    Kafka compares a tagged structure with an empty one, so that null is printed.
    """
    if field.tag is None:
        return True
    if field.kind is Kind.STRUCT and not field.is_array:
        return value is None or any(value[each.name] != each.default for each in field.fields)
    return bool(value != field.default)


def value_json(field: Field, version: int, value: Any) -> str:
    """Return the value of one field as JSON."""
    if value is None:
        return "null"
    if field.is_array:
        return "[" + ",".join(_one_json(field, version, each) for each in value) + "]"
    return _one_json(field, version, value)


def _one_json(field: Field, version: int, value: Any) -> str:
    if field.kind is Kind.STRUCT:
        return fields_json(field.fields, version, value)
    if field.kind is Kind.BYTES:
        return f'"{b64encode(value).decode("ascii")}"'
    if field.kind is Kind.FLOAT64:
        return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return json.dumps(value)


def double_text(value: float) -> str:
    """Return the text that Java's Double.toString returns."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    start = "-" if sign else ""
    if value == 0:
        return f"{start}0.0"
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + exponent  # Of ten, that the first digit stands for.
    if _PLAIN_EXPONENT_MIN <= power <= _PLAIN_EXPONENT_MAX:
        text = "0" * -power + text if power < 0 else text.ljust(power + 2, "0")
        cut = 1 if power < 0 else power + 1
        return f"{start}{text[:cut]}.{text[cut:]}"
    return f"{start}{text[0]}.{text[1:] or '0'}E{power}"
