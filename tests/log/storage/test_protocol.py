"""What every storage promises, asked of each: files in memory, real files, and what goes around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.errors import CorruptDataError, UsageError
from broker.units import MIB, DurationMs, TimeMs
from log.errors import MissingFileError, StorageError
from log.storage import Fault, FaultKind, FaultyStorage, FileStorage, MemoryStorage, Storage, SyncPolicy
from tests.support.disk_image import DiskImage, storage_of
from tests.support.recorded import RecordedStorage

Make = Callable[[Path], Storage]
MAKERS: dict[str, Make] = {
    "memory": lambda folder: MemoryStorage(ManualClock()),
    "files": lambda folder: FileStorage(folder / "root"),
    "files, synced": lambda folder: FileStorage(folder / "root", sync_policy=SyncPolicy.ALWAYS),
    "recorded": lambda folder: RecordedStorage(MemoryStorage(ManualClock())),
    "faulty": lambda folder: FaultyStorage(MemoryStorage(ManualClock()), Fault("never", FaultKind.NO_SPACE)),
}


@pytest.fixture(params=sorted(MAKERS))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return MAKERS[request.param](tmp_path)


def write(storage: Storage, path: str, data: bytes) -> None:
    file = storage.open(path, create=True)
    file.truncate(0)
    file.append(data)
    file.close()


def test_a_view_shows_what_there_was_when_it_was_taken(storage: Storage) -> None:
    storage.make_directory("t-0")
    file = storage.open("t-0/a", create=True)
    file.append(b"0123456789" * 1000)
    view = file.view()
    part = view[5000:5010]
    file.append(b"more" * 100_000)
    file.truncate(7)
    file.append(b"new")
    storage.rename("t-0/a", "t-0/b")
    assert bytes(file.view()) == b"0123456new"
    file.close()
    storage.remove_directory("t-0")
    assert bytes(part) == b"0123456789"
    assert bytes(view) == b"0123456789" * 1000


def test_an_open_file_goes_on_under_its_new_name(storage: Storage) -> None:
    storage.make_directory("t-0")
    file = storage.open("t-0/a", create=True)
    storage.rename("t-0/a", "t-0/a.swap")
    storage.rename("t-0", "t-1")
    file.append(b"x")
    held = file.view()
    file.truncate(0)
    file.append(b"yz")
    assert bytes(held) == b"x"
    assert storage.read("t-1/a.swap") == b"yz"


def test_a_rename_stays_in_its_directory(storage: Storage) -> None:
    storage.make_directory("t-0")
    write(storage, "a", b"1")
    with pytest.raises(UsageError) as refusal:
        storage.rename("a", "t-0/a")
    assert str(refusal.value) == "'a' cannot become 't-0/a': files move within one directory only"
    assert storage.read("a") == b"1"


def test_names_are_listed_sorted_and_directories_nest(storage: Storage) -> None:
    storage.make_directory("b/c/d")
    storage.make_directory("b/c")
    write(storage, "b/z", b"")
    write(storage, "b/a", b"")
    assert storage.list() == ("b",)
    assert storage.list("b") == ("a", "c", "z")
    assert storage.list("b/c/d") == ()
    assert [storage.is_directory(path) for path in ("", "b", "b/c/d", "b/z", "x")] == [True, True, True, False, False]
    assert [storage.exists(path) for path in ("", "b", "b/z", "b/x", "x/y")] == [True, True, True, False, False]
    storage.remove_directory("b/c")
    assert storage.list("b") == ("a", "z")


@pytest.mark.parametrize(
    "use",
    [
        lambda storage: storage.open("x"),
        lambda storage: storage.open("x/y", create=True),
        lambda storage: storage.read("x"),
        lambda storage: storage.size_bytes("x"),
        lambda storage: storage.modified_ms("x"),
        lambda storage: storage.set_modified_ms("x", 1),
        lambda storage: storage.rename("x", "y"),
        lambda storage: storage.remove("x"),
        lambda storage: storage.remove_directory("x"),
        lambda storage: storage.list("x"),
        lambda storage: storage.sync_directory("x"),
        lambda storage: storage.replace("x/y", b""),
    ],
)
def test_what_is_not_there_is_missing(storage: Storage, use: Callable[[Storage], object]) -> None:
    with pytest.raises(MissingFileError) as refusal:
        use(storage)
    assert refusal.value.definite
    assert "no such" in str(refusal.value)
    assert storage.list() == ()


def test_a_directory_is_no_file(storage: Storage) -> None:
    storage.make_directory("d")
    write(storage, "f", b"")
    for use in (
        lambda: storage.open("d", create=True),
        lambda: storage.rename("f", "d"),
        lambda: storage.make_directory("f"),
        lambda: storage.replace("d", b""),
    ):
        with pytest.raises(StorageError):
            use()
    assert storage.is_directory("d")
    assert storage.read("f") == b""


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "a/./b", "a\0b", "x" * 5000])
def test_no_path_leads_out_of_the_root(storage: Storage, path: str) -> None:
    for use in (storage.open, storage.exists, storage.list, storage.remove, storage.make_directory, storage.read):
        with pytest.raises(UsageError, match="is not allowed; a path is relative"):
            use(path)
    with pytest.raises(UsageError):
        storage.replace(path, b"")


def test_a_file_that_is_too_large_is_not_read(storage: Storage) -> None:
    write(storage, "a", b"12345")
    assert storage.read("a", size_bytes_max=5) == b"12345"
    with pytest.raises(CorruptDataError) as refusal:
        storage.read("a", size_bytes_max=4)
    assert str(refusal.value) == "a: has 5 bytes; at most 4 are read"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 1), st.binary(max_size=300)),
        st.tuples(st.just("write"), st.integers(0, 400), st.binary(max_size=50)),
        st.tuples(st.just("truncate"), st.integers(0, 700), st.just(b"")),
        st.tuples(st.just("rename"), st.integers(0, 2), st.just(b"")),
        st.tuples(st.just("view"), st.just(0), st.just(b"")),
    ),
    max_size=20,
)


@given(steps=STEPS)
@settings(deadline=None)
def test_both_storages_do_what_a_plain_bytearray_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bytes]]
) -> None:
    for storage in (MemoryStorage(ManualClock()), FileStorage(tmp_path_factory.mktemp("root"))):
        plain, name, file = bytearray(), "f0", storage.open("f0", create=True)
        views: list[tuple[memoryview, bytes]] = []
        for step, number, data in steps:
            if step == "append":
                file.append(data)
                plain += data
            elif step == "write":
                grown = max(len(plain), number + len(data)) if data else len(plain)
                plain.extend(bytes(grown - len(plain)))
                plain[number : number + len(data)] = data
                file.write_at(number, data)
                views.clear()  # Writing in place may show through.
            elif step == "truncate":
                file.truncate(number)
                del plain[number:]
                plain.extend(bytes(number - len(plain)))
            elif step == "rename":
                storage.rename(name, f"f{number}")
                name = f"f{number}"
            else:
                views.append((file.view(), bytes(plain)))
            assert file.read_at(0, 1000) == plain
            assert all(view == shown for view, shown in views)
        assert storage.read(name) == plain


def test_room_that_is_only_reserved_takes_no_memory() -> None:
    storage = MemoryStorage(ManualClock())
    files = [storage.open(f"{number}", create=True) for number in range(2000)]
    for file in files:
        file.truncate(10 * MIB)  # 20 GB together.
        file.write_at(8, b"entry")
    assert files[0].read_at(6, 10) == b"\0\0entry\0\0\0"
    assert files[0].size_bytes == 10 * MIB


def test_the_clock_says_when_a_file_was_changed() -> None:
    clock = ManualClock(TimeMs(100))
    storage = storage_of(clock, DiskImage({"a": b"x"}))
    assert storage.modified_ms("a") == 100
    clock.advance(DurationMs(5))
    storage.open("a").read_at(0, 1)
    storage.open("a").truncate(1)
    assert storage.modified_ms("a") == 100
    storage.open("a").append(b"y")
    assert storage.modified_ms("a") == 105
