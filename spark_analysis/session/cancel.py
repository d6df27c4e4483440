"""Cancel a session's jobs when an interrupt is on its way, and tell of Spark's errors in one line.

What it decides: what comes out of a block with a session that an interrupt or an error of Spark's ends.

How: Spark's own handler asks the JVM on the very connection on which the main thread may be waiting; that fails, and
the jobs go on. Here another thread asks, on its own connection.

Source: Spark 4.3.0 pyspark/core/context.py (its handler of SIGINT), pyspark/sql/connect/session.py (interruptAll).
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PythonException

from broker.errors import BrokersideError, shorten

CANCEL_SECONDS_MAX: Final = 3  # From an interrupt to the end of a JVM that does not heed it.

_JAVA_PREFIX: Final = re.compile(r"^(Caused by)?: (org\.apache\.spark\.\w+: )?")


class JobError(BrokersideError):
    """Report that a Spark job failed, neither by its input nor by the model; a note holds Spark's trace."""

    definite = False  # Other jobs of the session have done their work.


def job_error(error: Exception) -> JobError:
    """Return a JobError with one line of Spark's error; the whole error is a note, which a traceback shows."""
    text = str(error)
    lines = [line.strip() for line in text.split("JVM stacktrace:")[0].splitlines() if line.strip()] or [repr(error)]
    # An error of our own function stands at the end of the worker's trace, any other in the first line.
    line = lines[-1 if isinstance(error, PythonException) else 0]
    if isinstance(error, Py4JError) or line.endswith(":"):
        line = _java_reason(text) or line
    failure = JobError(f"a Spark job failed: {shorten(line, 300)}")
    failure.add_note(text)
    return failure


def _java_reason(text: str) -> str | None:
    """Return the first reason in a Java stack trace, without the exception's class; None if it gives none."""
    lines = (line.strip() for line in text.splitlines() if line.startswith((": ", "Caused by: ")))
    reason = next((line for line in lines if not line.endswith(":")), None)
    return reason and _JAVA_PREFIX.sub("", reason)


def cancel_jobs(cancel: Callable[[], object], kill: Callable[[], None] | None = None) -> None:
    """Cancel all jobs, as an interrupt is on its way; call `kill` if this process still works some seconds later.

    The main thread may wait for what a cancelled job never sends; a killed JVM ends every wait.
    """

    def ask() -> None:
        with contextlib.suppress(Exception):  # The JVM may be gone by then.
            cancel()

    logging.disable(logging.CRITICAL)  # Py4J logs the call that was cut short, with its trace.
    threading.Thread(target=ask, daemon=True).start()
    if kill is not None:
        killer = threading.Timer(CANCEL_SECONDS_MAX, kill)
        killer.daemon = True
        killer.start()


def interrupt_behind(error: BaseException) -> BaseException | None:
    """Return the KeyboardInterrupt, or what else is no error, that was on its way out when `error` came up."""
    seen: BaseException | None = error
    while isinstance(seen, Exception):
        seen = seen.__context__  # Ends: Python keeps this chain free of loops.
    return seen


@contextlib.contextmanager
def own_logging() -> Iterator[None]:
    """Put back the level of logging when the block ends."""
    level = logging.root.manager.disable
    try:
        yield
    finally:
        logging.disable(level)
