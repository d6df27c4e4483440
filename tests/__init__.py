"""What must hold, package by package, and what it is held against."""
