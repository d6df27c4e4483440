"""The `brokerside` command: each package's commands under one roof."""
