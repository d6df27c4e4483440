"""What the jobs read: dumps and metadata logs, named on the command line, and recipes that are files.

Dumps and recipes are opened by `files` alone; a metadata log is opened by `log.tools`, read-only.
"""

__all__: tuple[str, ...] = ()
