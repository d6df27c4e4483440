"""What crashes and dirt do to a log: torn and rotten tails, power loss at any moment, one fault in each file."""
