"""The tables that jobs write: schemas, writers, readers."""
