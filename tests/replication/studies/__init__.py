"""Studies: grids of settings times seeds."""
