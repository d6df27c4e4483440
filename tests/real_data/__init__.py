"""Public data, byte for byte as published; PROVENANCE.md says from where."""
