"""Signals while something starts, works and stops, without Spark."""

from __future__ import annotations

import os
import signal

import pytest

from spark_analysis.session.signals import held_signals, hurried_signals


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_held_interrupt_hurries_at_once_and_raises_at_the_end() -> None:
    seen: list[str] = []

    def work() -> None:
        with held_signals(lambda: seen.append("hurry")):
            interrupt()
            seen.append("worked on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["hurry", "worked on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_gives_way_to_the_interrupt_that_caused_it() -> None:
    def work() -> None:
        with held_signals(lambda: None):
            interrupt()
            raise ConnectionError("the JVM is gone")

    with pytest.raises(KeyboardInterrupt):
        work()


def test_an_error_without_a_signal_passes_through() -> None:
    with pytest.raises(ConnectionError, match="gone"), held_signals(lambda: None):
        raise ConnectionError("gone")


def test_signals_are_held_anew_after_somebody_elses_handler() -> None:
    def work() -> None:
        with held_signals(lambda: None) as hold_again:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            hold_again()
            interrupt()

    with pytest.raises(KeyboardInterrupt):
        work()


@pytest.mark.parametrize("block", [held_signals, hurried_signals])
def test_an_ignored_signal_stays_ignored(block) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with block(lambda: pytest.fail("nobody is told")):
            interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_working_block_is_hurried_and_then_interrupted() -> None:
    seen: list[str] = []

    def work() -> None:
        with hurried_signals(lambda: seen.append("hurry")):
            interrupt()
            seen.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == ["hurry"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
