"""Golden vectors, printed by Kafka's own classes, and what runs them."""
