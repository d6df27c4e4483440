"""The request path of one broker."""
