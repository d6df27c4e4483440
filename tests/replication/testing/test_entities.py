"""Requests and responses of every API and version served are read and written."""

from __future__ import annotations

import io

import pytest
from kio.serial import entity_reader, entity_writer

from broker.errors import CorruptDataError
from replication.testing.entities import Request, build, read_request, request_class, response_class, write_response
from replication.testing.served import SERVED

VERSIONS = [(each.api, version) for each in SERVED for version in range(each.least, each.most + 1)]


def request_frame(api: int, version: int, correlation_id: int = 7, **values: object) -> bytes:
    """Return a request whose other fields have their defaults."""
    body_class = request_class(api, version)
    header = build(
        body_class.__header_schema__,
        {
            "request_api_key": api,
            "request_api_version": version,
            "correlation_id": correlation_id,
            "client_id": "me",
        },
    )
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(body_class)(buffer, build(body_class, values))
    return buffer.getvalue()


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_request_of_each_version_is_read_and_a_response_written(api: int, version: int) -> None:
    request = read_request(request_frame(api, version))
    assert (request.api, request.version, request.correlation_id, request.client_id) == (api, version, 7, "me")
    frame = write_response(request, {"error_code": 3})
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 7
    body_class = response_class(api, version)
    header_bytes = 4 + (1 if body_class.__header_schema__.__flexible__ else 0)
    body, _ = entity_reader(body_class)(frame[4:], header_bytes)
    assert isinstance(body, body_class)
    assert getattr(body, "error_code", 3) == 3


def test_a_field_that_a_version_does_not_have_is_left_out() -> None:
    values = {"topics": [{"name": "t", "topic_id": None, "partitions": [{"partition_index": 1, "leader_epoch": 5}]}]}
    old, new = build(response_class(3, 0), values), build(response_class(3, 12), values)
    assert not hasattr(old.topics[0].partitions[0], "leader_epoch")
    assert (old.topics[0].partitions[0].partition_index, new.topics[0].partitions[0].leader_epoch) == (1, 5)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"\x00\x03", "a request of 2 bytes is shorter than its header"),
        (request_frame(3, 12)[:-4], "request 3 of version 12 cannot be read"),
        (b"\x7f\xff\x00\x01\x00\x00\x00\x00", "request 32767 of version 1 cannot be read"),
    ],
)
def test_bytes_that_are_no_request_are_refused(frame: bytes, words: str) -> None:
    with pytest.raises(CorruptDataError) as refused:
        read_request(frame)
    assert words in str(refused.value)


def test_bytes_behind_a_request_are_passed_over() -> None:
    assert isinstance(read_request(request_frame(3, 12) + b"abc"), Request)
