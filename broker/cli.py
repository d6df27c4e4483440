"""How every command of this library begins and ends: escaped output, one-line errors, exit statuses.

Exit status 0 is success, 1 a refusal or a warning made strict, 2 wrong usage or unusable input,
130 an interrupt. Whatever is wrong is said in one line on standard error, without a traceback.

Strings of other people's data may hold control characters that a terminal would obey;
`printable` shows them escaped.

Source: ours; the statuses are those of POSIX utilities and of click.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from broker.errors import BrokersideError, RefusedError, UsageError
from broker.printable import printable as printable  # Commands take it from here.

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it.
CHART_SUFFIXES: Final = (".svg", ".html")


def check_chart(chart: Path | None) -> None:
    """Raise UsageError for a chart that cannot be written, before anything is run; make the folder it goes to."""
    if chart is None:
        return
    if chart.suffix not in CHART_SUFFIXES:
        raise UsageError(f"--chart {str(chart)!r}: a chart is written as {' or '.join(CHART_SUFFIXES)}")
    try:
        chart.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--chart {str(chart)!r}: {error.strerror}") from None


def run(command: click.Command, name: str, arguments: list[str] | None = None) -> int:
    """Run a click command as the program `name` and return its exit status; never raises for what a user can cause."""
    try:
        result: Any = command.main(args=arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo(f"{name}: interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except KeyboardInterrupt:
        click.echo(f"{name}: interrupted", err=True)
        return EXIT_INTERRUPTED
    except BrokersideError as error:
        click.echo(f"{name}: {printable(str(error))}", err=True)
        return EXIT_REFUSED if isinstance(error, RefusedError) else EXIT_USAGE
    except OSError as error:  # Such as a full disk under our own output: nothing that a command opens to read.
        place = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"{name}: {printable(f'{place}{error.strerror or error}')}", err=True)
        return EXIT_USAGE
    except SystemExit:
        # Not standalone, click leaves so only when the reader of our output has left, as `| head` does: no failure.
        return 0
    return result if isinstance(result, int) else 0
