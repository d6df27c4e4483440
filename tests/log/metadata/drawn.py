"""Metadata records at random: any record of a schema, and sequences of records that fit one another.

The second draws ids from a handful, so that records meet, and leaves out those that our state refuses: what is left is
what a controller may write, which Kafka must take. Both are drawn as a release of Kafka knows them.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from broker.errors import CorruptDataError
from broker.ids import LeaderEpoch, Offset
from broker.releases import NEWEST, Release
from broker.units import TimeMs
from broker.wire.fields import Field, Kind, Message, encode_uuid
from log.metadata import MetadataImage, MetadataRecord, RecordType
from log.metadata.schemas import SCHEMAS
from log.metadata.state import MetadataState

UUIDS: Final = st.binary(min_size=16, max_size=16).map(encode_uuid)
TEXTS: Final = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
VALUES: Final[dict[Kind, st.SearchStrategy[Any]]] = {
    Kind.BOOL: st.booleans(),
    Kind.INT8: st.integers(-(2**7), 2**7 - 1),
    Kind.INT16: st.integers(-(2**15), 2**15 - 1),
    Kind.UINT16: st.integers(0, 2**16 - 1),
    Kind.INT32: st.integers(-(2**31), 2**31 - 1),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
    # Java 17 writes some numbers with more digits than they need; these it does not.
    Kind.FLOAT64: st.integers(-(2**40), 2**40).map(float) | st.sampled_from((0.5, 1e-5, 1e22, -0.125)),
    Kind.UUID: UUIDS,
    Kind.STRING: TEXTS,
    Kind.BYTES: st.binary(max_size=6),
}
BROKERS: Final = st.integers(0, 4)
BROKER_LISTS: Final = st.lists(BROKERS, unique=True, max_size=4).map(tuple)
TOPICS: Final = tuple(encode_uuid(bytes([number] * 16)) for number in range(1, 5))
DIRECTORIES: Final = st.sampled_from([encode_uuid(bytes(15) + bytes([number])) for number in (0, 1, 2, 100, 101)])


CORDONS: Final = Release("4.3")
"""The first release with cordoned directories (KIP-1066); what else metadata records hold, 4.0 has too."""
CORDONED: Final = "cordonedLogDirs"
UNREGISTERS: Final = Release("4.4")
"""The first release whose controllers can be unregistered."""
METADATA_LEVELS: Final = dict(zip(map(Release, ("4.0", "4.1", "4.2", "4.3", "4.4")), (25, 27, 29, 30, 33), strict=True))
"""The feature level of the newest metadata.version that a release has."""


def values_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    """Return what a field may hold."""
    one = structures(field.fields, version) if field.kind is Kind.STRUCT else VALUES[field.kind]
    found: st.SearchStrategy[Any] = st.lists(one, max_size=3).map(tuple) if field.is_array else one
    return st.none() | found if field.is_nullable else found


def structures(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return the values of a structure, all fields of the version given."""
    return st.fixed_dictionaries({field.name: values_of(field, version) for field in fields if field.since <= version})


def version_max(kind: RecordType, release: Release) -> int:
    """Return the highest version of a record type that a release reads."""
    has_cordons = any(field.name == CORDONED for field in SCHEMAS[kind].fields)
    return SCHEMAS[kind].version_max - (has_cordons and release < CORDONS)


def of_schema(kind: RecordType, schema: Message, release: Release) -> st.SearchStrategy[MetadataRecord]:
    """Return records of one type, of every version that a release reads."""
    return st.integers(0, version_max(kind, release)).flatmap(
        lambda version: structures(schema.fields, version).map(lambda data: MetadataRecord(kind, version, data))
    )


def records_of(release: Release) -> st.SearchStrategy[MetadataRecord]:
    """Return any records of any type that a release reads."""
    known = sorted(SCHEMAS.keys() - ({RecordType.UNREGISTER_CONTROLLER_RECORD} if release < UNREGISTERS else set()))
    return st.sampled_from(known).flatmap(lambda kind: of_schema(kind, SCHEMAS[kind], release))


RECORDS: Final = records_of(NEWEST)


def _made(kind: RecordType, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[MetadataRecord]:
    version = SCHEMAS[kind].version_max
    return st.fixed_dictionaries(fields).map(lambda data: MetadataRecord(kind, version, data))


_ASSIGNED: Final = st.tuples(BROKER_LISTS, st.lists(DIRECTORIES, min_size=4, max_size=4))
_PLACE: Final = {"topicId": st.sampled_from(TOPICS), "partitionId": st.integers(0, 2)}


def _partition(data: dict[str, Any]) -> MetadataRecord:
    replicas, directories = data.pop("assigned")
    full = {**data, "replicas": replicas, "directories": tuple(directories[: len(replicas)])}
    return MetadataRecord(RecordType.PARTITION_RECORD, 2, full)


def _change(data: dict[str, Any]) -> MetadataRecord:
    assigned = data.pop("assigned")
    if assigned is not None:
        replicas, directories = assigned
        data |= {"replicas": replicas, "directories": tuple(directories[: len(replicas)])}
    return MetadataRecord(RecordType.PARTITION_CHANGE_RECORD, 2, data)


_PARTITIONS: Final = st.fixed_dictionaries(
    {
        **_PLACE,
        "assigned": _ASSIGNED,
        "isr": BROKER_LISTS,
        "leader": BROKERS | st.just(-1),
        "leaderEpoch": st.integers(0, 9),
        "partitionEpoch": st.integers(0, 9),
        "leaderRecoveryState": st.sampled_from((0, 1)),
        "eligibleLeaderReplicas": BROKER_LISTS,
        "lastKnownElr": BROKER_LISTS,
    }
).map(_partition)
_CHANGES: Final = st.fixed_dictionaries(
    {
        **_PLACE,
        "assigned": st.none() | _ASSIGNED,
        "isr": st.none() | BROKER_LISTS,
        "leader": BROKERS | st.sampled_from((-1, -2)),
        "removingReplicas": st.none() | BROKER_LISTS,
        "addingReplicas": st.none() | BROKER_LISTS,
        "leaderRecoveryState": st.sampled_from((-1, 0, 1)),
        "eligibleLeaderReplicas": st.none() | BROKER_LISTS,
        "lastKnownElr": st.none() | BROKER_LISTS,
    }
).map(_change)
_EPOCHS: Final = st.integers(0, 1)
_NAMES: Final = st.sampled_from(("a", "b", "c"))
_LOG_DIRS: Final = st.lists(
    st.sampled_from([encode_uuid(bytes(15) + bytes([number])) for number in (100, 101, 102)]), max_size=3, unique=True
).map(tuple)
_REGISTRATIONS: Final = _made(
    RecordType.REGISTER_BROKER_RECORD,
    brokerId=BROKERS,
    brokerEpoch=_EPOCHS,
    rack=st.none() | _NAMES,
    fenced=st.booleans(),
    inControlledShutdown=st.booleans(),
    logDirs=_LOG_DIRS,
    cordonedLogDirs=st.none() | _LOG_DIRS,
)
_CREATIONS: Final = st.integers(0, 3).map(
    lambda number: MetadataRecord(RecordType.TOPIC_RECORD, 0, {"name": f"t{number}", "topicId": TOPICS[number]})
)
_FITTING: Final = st.one_of(
    _REGISTRATIONS,
    _made(RecordType.UNREGISTER_BROKER_RECORD, brokerId=BROKERS, brokerEpoch=_EPOCHS),
    _made(RecordType.FENCE_BROKER_RECORD, id=BROKERS, epoch=_EPOCHS),
    _made(RecordType.UNFENCE_BROKER_RECORD, id=BROKERS, epoch=_EPOCHS),
    _made(
        RecordType.BROKER_REGISTRATION_CHANGE_RECORD,
        brokerId=BROKERS,
        brokerEpoch=_EPOCHS,
        fenced=st.sampled_from((-1, 0, 1)),
        inControlledShutdown=st.sampled_from((0, 1)),
        logDirs=_LOG_DIRS,
        cordonedLogDirs=st.none() | _LOG_DIRS,
    ),
    _made(
        RecordType.REGISTER_CONTROLLER_RECORD,
        controllerId=BROKERS,
        incarnationId=st.sampled_from(TOPICS),
        zkMigrationReady=st.just(value=False),
        endPoints=st.just(()),
        features=st.just(()),
    ),
    _made(RecordType.UNREGISTER_CONTROLLER_RECORD, controllerId=BROKERS),
    _CREATIONS,
    _made(RecordType.REMOVE_TOPIC_RECORD, topicId=st.sampled_from(TOPICS)),
    _PARTITIONS,
    _CHANGES,
    _CHANGES,
    _made(RecordType.CLEAR_ELR_RECORD, topicName=st.sampled_from(("", "t0", "t1"))),
    _made(
        RecordType.CONFIG_RECORD,
        resourceType=st.sampled_from((2, 4)),
        resourceName=st.sampled_from(("", "t0", "t1", "1")),
        name=_NAMES,
        value=st.none() | _NAMES,
    ),
    _made(RecordType.FEATURE_LEVEL_RECORD, name=st.just("group.version"), featureLevel=st.integers(0, 2)),
    _made(
        RecordType.CLIENT_QUOTA_RECORD,
        entity=st.sampled_from(
            (
                ({"entityType": "user", "entityName": "u"},),
                ({"entityType": "user", "entityName": None}, {"entityType": "client-id", "entityName": "c"}),
            )
        ),
        key=_NAMES,
        value=st.sampled_from((1.0, 2.5)),
        remove=st.booleans(),
    ),
    _made(RecordType.PRODUCER_IDS_RECORD, brokerId=BROKERS, nextProducerId=st.integers(0, 9)),
    _made(
        RecordType.USER_SCRAM_CREDENTIAL_RECORD,
        name=_NAMES,
        mechanism=st.sampled_from((1, 2)),
        salt=st.just(b"s"),
        iterations=st.integers(4096, 4100),
    ),
    _made(RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD, name=_NAMES, mechanism=st.sampled_from((1, 2))),
    _made(
        RecordType.ACCESS_CONTROL_ENTRY_RECORD,
        id=st.sampled_from(TOPICS),
        resourceType=st.just(2),
        resourceName=_NAMES,
        patternType=st.just(3),
        principal=st.just("User:a"),
        host=st.just("*"),
        operation=st.just(3),
        permissionType=st.just(3),
    ),
    _made(RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, id=st.sampled_from(TOPICS)),
    _made(RecordType.NO_OP_RECORD),
)


def image_of(state: MetadataState) -> MetadataImage:
    """Return the image of a state that was not read from a log."""
    return state.image(offset=Offset(0), epoch=LeaderEpoch(0), time_ms=TimeMs(0))


def _known(record: MetadataRecord, release: Release) -> MetadataRecord:
    """Return a record as a release before cordoned directories writes it, or the record itself."""
    if release >= CORDONS or CORDONED not in record.data:
        return record
    data = {name: value for name, value in record.data.items() if name != CORDONED}
    return MetadataRecord(record.type, version_max(record.type, release), data)


def _fit(records: list[MetadataRecord], release: Release) -> tuple[MetadataRecord, ...]:
    """Leave out what contradicts the records before it, and topics that are there already."""
    level = METADATA_LEVELS[release]
    first = MetadataRecord(RecordType.FEATURE_LEVEL_RECORD, 0, {"name": "metadata.version", "featureLevel": level})
    state = MetadataState()
    kept: list[MetadataRecord] = []
    topics: set[str] = set()
    for record in (first, *(_known(each, release) for each in records)):
        if record.type is RecordType.UNREGISTER_CONTROLLER_RECORD and release < UNREGISTERS:
            continue
        defaults = {field.name: field.default for field in SCHEMAS[record.type].fields if field.since <= record.version}
        whole = MetadataRecord(record.type, record.version, defaults | dict(record.data))
        if record.type is RecordType.TOPIC_RECORD and record.data["name"] in topics:
            continue
        try:
            state.apply(whole)
        except CorruptDataError:
            continue
        kept.append(whole)
        topics = {topic.name for topic in image_of(state).topics.values()}
    return tuple(kept)


_PARTS: Final = st.tuples(
    st.lists(_REGISTRATIONS, max_size=5),
    st.lists(_CREATIONS, min_size=1, max_size=6),
    st.lists(_PARTITIONS, min_size=2, max_size=8),
    st.lists(_FITTING, max_size=40),
)


def sequences_of(release: Release) -> st.SearchStrategy[tuple[MetadataRecord, ...]]:
    """Return sequences of records that a controller of a release may write."""
    return _PARTS.map(lambda parts: _fit([record for part in parts for record in part], release))
