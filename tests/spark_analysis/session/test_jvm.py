"""The JVM of a session, with a shell script in its place."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

from spark_analysis.session.jvm import Jvm, read_connection, spark_submit


def fake_spark(home: Path, script: str) -> Path:
    program = home / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return home


def test_the_command_has_every_option_and_what_the_environment_adds() -> None:
    assert spark_submit(Path("spark"), {"a.b": "1", "c": "x y"}, "--jars 'a b.jar' pyspark-shell") == [
        "spark/bin/spark-submit", "--conf", "a.b=1", "--conf", "c=x y", "--jars", "a b.jar", "pyspark-shell"
    ]  # fmt: skip


def test_the_connection_is_a_port_and_a_string_behind_its_length() -> None:
    assert read_connection(struct.pack(">ii", 34567, 6) + "schlüs".encode()[:6]) == (34567, "schlü")


def test_a_jvm_that_listens_is_found_by_the_environment_and_ends_with_its_input(tmp_path: Path) -> None:
    script = r"""printf '\000\000\000\007\000\000\000\003abc' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.part"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.part" "$_PYSPARK_DRIVER_CONN_INFO_PATH"; cat; echo ended > "$0.ended" """
    jvm = Jvm()
    home = fake_spark(tmp_path / "spark", script)
    found = jvm.start(home, {}, tmp_path)
    assert found == {"PYSPARK_GATEWAY_PORT": "7", "PYSPARK_GATEWAY_SECRET": "abc"}
    jvm.end()
    assert (home / "bin" / "spark-submit.ended").exists()
    assert not jvm.was_killed


def test_a_jvm_that_ends_before_it_listens_is_named_with_its_status(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the JVM ended with status 3 before it listened"):
        Jvm().start(fake_spark(tmp_path / "spark", "exit 3"), {}, tmp_path)


def test_a_killed_jvm_ends_the_wait_for_it_with_all_that_it_started(tmp_path: Path) -> None:
    jvm = Jvm()
    threading.Timer(0.3, jvm.kill).start()
    with pytest.raises(RuntimeError, match="status -9"):
        jvm.start(fake_spark(tmp_path / "spark", "sleep 600 & wait"), {}, tmp_path)
    jvm.end()
    assert jvm.was_killed


def test_a_jvm_that_was_killed_before_it_started_does_not_live(tmp_path: Path) -> None:
    jvm = Jvm()
    jvm.kill()
    with pytest.raises(RuntimeError, match="status -9"):
        jvm.start(fake_spark(tmp_path / "spark", "sleep 5; exit 3"), {}, tmp_path)


def test_a_jvm_that_does_not_end_with_its_input_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.session.jvm.STOP_SECONDS_MAX", 0.2)
    script = r"""printf '\000\000\000\007\000\000\000\003abc' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.part"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.part" "$_PYSPARK_DRIVER_CONN_INFO_PATH"; exec sleep 20"""
    jvm = Jvm()
    jvm.start(fake_spark(tmp_path / "spark", script), {}, tmp_path)
    jvm.end()
    assert jvm.was_killed
    assert jvm._process is not None
    assert jvm._process.returncode == -9


def test_ending_what_never_started_is_nothing(tmp_path: Path) -> None:
    jvm = Jvm()
    jvm.end()
    assert (jvm._process, jvm.was_killed) == (None, False)
    script = r"""printf '\000\000\000\007\000\000\000\003abc' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.part"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.part" "$_PYSPARK_DRIVER_CONN_INFO_PATH"; cat"""
    assert jvm.start(fake_spark(tmp_path / "spark", script), {}, tmp_path)["PYSPARK_GATEWAY_PORT"] == "7"
    jvm.end()
    assert jvm._process is not None
    assert jvm._process.returncode == 0


def test_killing_what_never_started_is_remembered_and_no_process_is_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled: list[tuple[int, int]] = []
    monkeypatch.setattr("os.killpg", lambda group, number: signalled.append((group, number)))
    jvm = Jvm()
    jvm.kill()
    jvm.end()
    assert (jvm._process, jvm.was_killed, signalled) == (None, True, [])
