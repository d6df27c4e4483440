package org.apache.kafka.storage.internals.log;

/** Fields of Kafka's value classes, which are no records before 4.2. */
public final class LogFields {
    private LogFields() {
    }

    public static long timestamp(TimestampOffset of) {
        return of.timestamp;
    }

    public static long offset(TimestampOffset of) {
        return of.offset;
    }

    public static long offset(OffsetPosition of) {
        return of.offset;
    }

    public static int position(OffsetPosition of) {
        return of.position;
    }

    public static int epoch(EpochEntry of) {
        return of.epoch;
    }

    public static long startOffset(EpochEntry of) {
        return of.startOffset;
    }

    public static int lastSequence(ProducerStateEntry of) {
        return of.lastSeq();
    }

    public static int lastOffsetDelta(ProducerStateEntry of) {
        return of.lastOffsetDelta();
    }
}
