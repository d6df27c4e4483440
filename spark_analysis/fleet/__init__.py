"""Simulated fleets: what a recipe says, how it is read, and how each of its clusters is made."""

__all__: tuple[str, ...] = ()
