"""Measure how even and how safe a placement is: loads, measures, constraints, audits, changes."""
