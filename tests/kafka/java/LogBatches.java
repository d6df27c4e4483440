import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/** Batches as Kafka writes them, from their description in JSON: what the golden files call a batch (input). */
final class LogBatches {
    private LogBatches() {
    }

    static MemoryRecords build(JsonNode batch) {
        if (batch.has("control")) {
            return marker(batch);
        }
        long baseOffset = batch.get("baseOffset").asLong();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), (byte) batch.get("magic").asInt(),
                Compression.of(CompressionType.forName(batch.get("compression").asText())).build(),
                TimestampType.forName(batch.get("timestampType").asText()), baseOffset,
                batch.path("logAppendTime").asLong(-1), batch.path("producerId").asLong(-1),
                (short) batch.path("producerEpoch").asInt(-1), batch.path("baseSequence").asInt(-1),
                batch.path("transactional").asBoolean(false), false,
                batch.path("partitionLeaderEpoch").asInt(-1), Integer.MAX_VALUE,
                batch.path("deleteHorizonMs").asLong(RecordBatch.NO_TIMESTAMP));
        long offset = baseOffset;
        for (JsonNode record : batch.get("records")) {
            offset = record.path("offset").asLong(offset);
            builder.appendWithOffset(offset, record.get("timestamp").asLong(), bytes(record.get("key")),
                    bytes(record.get("value")), headers(record.path("headers")));
            offset++;
        }
        return builder.build();
    }

    /** Return several batches one after another, as one append of a follower. */
    static MemoryRecords concatenate(List<MemoryRecords> parts) {
        ByteBuffer whole = ByteBuffer.allocate(parts.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
        parts.forEach(part -> whole.put(part.buffer().duplicate()));
        whole.flip();
        return MemoryRecords.readableRecords(whole);
    }

    private static MemoryRecords marker(JsonNode batch) {
        EndTransactionMarker marker = new EndTransactionMarker(
                ControlRecordType.valueOf(batch.get("control").asText()), batch.get("coordinatorEpoch").asInt());
        return MemoryRecords.withEndTransactionMarker(
                batch.get("baseOffset").asLong(), batch.get("records").get(0).get("timestamp").asLong(),
                batch.path("partitionLeaderEpoch").asInt(-1), batch.get("producerId").asLong(),
                (short) batch.get("producerEpoch").asInt(), marker);
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static Header[] headers(JsonNode pairs) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode pair : pairs) {
            headers.add(new RecordHeader(
                    ByteBuffer.wrap(pair.get(0).asText().getBytes(StandardCharsets.UTF_8)),
                    pair.get(1).isNull() ? null : ByteBuffer.wrap(bytes(pair.get(1)))));
        }
        return headers.toArray(new Header[0]);
    }
}
