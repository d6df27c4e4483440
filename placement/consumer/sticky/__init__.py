"""Implement the sticky and cooperative-sticky assignors of Kafka's client."""
