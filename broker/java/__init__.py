"""Reproduce the parts of Java that reach a result: string hashes, HashMap order, tree bins, java.util.Random."""
