"""Inputs that stand for much more than their bytes, and what reading them may cost."""
