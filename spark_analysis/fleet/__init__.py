"""Read a fleet's recipe, and make, place and count each of its simulated clusters."""

__all__: tuple[str, ...] = ()
