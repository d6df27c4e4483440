"""Slow and independent answers that the product is compared with."""
