"""What of Java reaches a result: string hashes, the order of hash maps, tree bins, java.util.Random."""
