"""Read dumps and metadata logs, named on the command line, and recipes that are files.

Constraints: `files` alone opens dumps and recipes; `log.tools` opens a metadata log, read-only.
"""

__all__: tuple[str, ...] = ()
