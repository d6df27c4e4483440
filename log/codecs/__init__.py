"""The bytes below records: checksums, varints, and the codecs in the framings that Kafka gives them."""

__all__: tuple[str, ...] = ()
