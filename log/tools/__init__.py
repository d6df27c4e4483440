"""What can be asked of files on disk without a broker: dump, verify, stats, compact, recover.

Each module computes and returns; `log.cli.commands` parses the command line and prints.
"""

from __future__ import annotations

__all__: tuple[str, ...] = ()
