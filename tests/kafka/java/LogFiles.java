import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** What Kafka's classes say of a log and of its files, in the JSON of the golden files. */
final class LogFiles {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final int LEGACY_ATTRIBUTES_AT = 17;
    private static final int ATTRIBUTES_AT = 21;
    private static final int LAST_OFFSET_DELTA_AT = 23;
    private static final int BASE_TIMESTAMP_AT = 27;
    private static final int OFFSET_ENTRY_BYTES = 8;
    private static final int TIME_ENTRY_BYTES = 12;

    private LogFiles() {
    }

    static ObjectNode state(UnifiedLog log) throws IOException {
        ObjectNode state = JSON.objectNode();
        state.put("logStartOffset", log.logStartOffset());
        state.put("logEndOffset", log.logEndOffset());
        state.put("highWatermark", log.highWatermark());
        state.put("lastStableOffset", log.lastStableOffset());
        state.put("recoveryPoint", log.recoveryPoint());
        ArrayNode segments = state.putArray("segments");
        for (LogSegment segment : log.logSegments()) {
            TimestampOffset max = segment.readMaxTimestampAndOffsetSoFar();
            segments.addArray().add(segment.baseOffset()).add(segment.size()).add(segment.offsetIndex().entries())
                    .add(segment.timeIndex().entries()).add(Fields.number(max, "timestamp")).add(Fields.number(max, "offset"));
        }
        ArrayNode epochs = state.putArray("leaderEpochs");
        log.leaderEpochCache().epochEntries().forEach(
                entry -> epochs.addArray().add(Fields.number(entry, "epoch")).add(Fields.number(entry, "startOffset")));
        ArrayNode producers = JSON.arrayNode();
        log.producerStateManager().activeProducers().values().stream()
                .sorted(Comparator.comparingLong(ProducerStateEntry::producerId))
                .forEach(entry -> producers.addArray().add(entry.producerId()).add(entry.producerEpoch())
                        .add(Fields.called(entry, "lastSeq")).add(entry.lastDataOffset())
                        .add(Fields.called(entry, "lastOffsetDelta"))
                        .add(entry.lastTimestamp()).add(entry.coordinatorEpoch())
                        .add(entry.currentTxnFirstOffset().orElse(-1)));
        if (!producers.isEmpty()) {
            state.set("producers", producers);
        }
        return state;
    }

    static ArrayNode names(File directory) {
        ArrayNode names = JSON.arrayNode();
        Arrays.stream(directory.list()).sorted().forEach(names::add);
        return names;
    }

    /** List files as `listing`, but batches without their records, which the kept files have. */
    static ArrayNode listingWithoutRecords(File directory) throws IOException {
        ArrayNode files = listing(directory);
        files.forEach(file -> file.path("batches").forEach(batch -> ((ObjectNode) batch).remove("records")));
        return files;
    }

    /** List the files of a closed log with what they hold. */
    static ArrayNode listing(File directory) throws IOException {
        ArrayNode files = JSON.arrayNode();
        File[] found = directory.listFiles();
        Arrays.sort(found, Comparator.comparing(File::getName));
        for (File file : found) {
            byte[] content = Files.readAllBytes(file.toPath());
            ObjectNode node = files.addObject();
            node.put("file", file.getName());
            node.put("size", content.length);
            node.put("sha256", sha256(content));
            String name = file.getName().replace(".deleted", "");
            if (name.endsWith(".log")) {
                node.set("batches", batches(file, ByteBuffer.wrap(content)));
            } else if (name.endsWith("index")) {
                entries(node, name, ByteBuffer.wrap(content));
            } else if (name.endsWith(".snapshot")) {
                node.set("producers", producers(ProducerStateManager.readSnapshot(file)));
            } else {
                node.put("text", new String(content, StandardCharsets.UTF_8));
            }
        }
        return files;
    }

    static void copy(File from, Path to) throws IOException {
        Files.createDirectories(to);
        for (File file : from.listFiles()) {
            Files.copy(file.toPath(), to.resolve(file.getName()), StandardCopyOption.REPLACE_EXISTING);
        }
    }

    /** Cut the copies of an open segment's indexes to their entries; the files themselves have more room. */
    static void trimIndexes(LogSegment segment, Path copied) throws IOException {
        trim(copied.resolve(segment.offsetIndex().file().getName()), segment.offsetIndex().entries() * OFFSET_ENTRY_BYTES);
        trim(copied.resolve(segment.timeIndex().file().getName()), segment.timeIndex().entries() * TIME_ENTRY_BYTES);
    }

    private static void trim(Path file, int size) throws IOException {
        Files.write(file, Arrays.copyOf(Files.readAllBytes(file), size));
    }

    private static void entries(ObjectNode node, String name, ByteBuffer content) {
        ArrayNode entries = node.putArray("entries");
        while (content.hasRemaining()) {
            if (name.endsWith(".txnindex")) {
                ObjectNode entry = entries.addObject();
                entry.put("version", content.getShort());
                entry.put("producerId", content.getLong()).put("firstOffset", content.getLong());
                entry.put("lastOffset", content.getLong()).put("lastStableOffset", content.getLong());
            } else if (name.endsWith(".timeindex")) {
                entries.addArray().add(content.getLong()).add(content.getInt());
            } else {
                entries.addArray().add(content.getInt()).add(content.getInt());
            }
        }
    }

    private static ArrayNode producers(Iterable<ProducerStateEntry> entries) {
        ArrayNode producers = JSON.arrayNode();
        for (ProducerStateEntry entry : entries) {
            ObjectNode node = producers.addObject();
            node.put("producerId", entry.producerId()).put("producerEpoch", entry.producerEpoch());
            node.put("lastSequence", Fields.called(entry, "lastSeq")).put("lastDataOffset", entry.lastDataOffset());
            node.put("lastOffsetDelta", Fields.called(entry, "lastOffsetDelta")).put("lastTimestamp", entry.lastTimestamp());
            node.put("coordinatorEpoch", entry.coordinatorEpoch());
            node.put("currentTxnFirstOffset", entry.currentTxnFirstOffset().orElse(-1));
        }
        return producers;
    }

    /** Decode the batches of a log file; legacy messages have none of the fields that came with magic 2. */
    static ArrayNode batches(File file, ByteBuffer content) throws IOException {
        ArrayNode batches = JSON.arrayNode();
        try (FileRecords records = FileRecords.open(file, false)) {
            for (FileChannelRecordBatch batch : records.batches()) {
                batches.add(decoded(batch, batch.position(), content));
            }
        }
        return batches;
    }

    static ObjectNode decoded(RecordBatch batch, int position, ByteBuffer content) {
        boolean legacy = batch.magic() < RecordBatch.MAGIC_VALUE_V2;
        ObjectNode node = JSON.objectNode();
        node.put("position", position).put("sizeInBytes", batch.sizeInBytes());
        node.put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset());
        node.put("nextOffset", batch.nextOffset()).put("magic", batch.magic());
        node.put("attributes", legacy
                ? content.get(position + LEGACY_ATTRIBUTES_AT) : content.getShort(position + ATTRIBUTES_AT));
        node.put("crc", batch.checksum());
        node.put("valid", batch.isValid()).put("compression", batch.compressionType().name);
        node.put("timestampType", batch.timestampType().name).put("maxTimestamp", batch.maxTimestamp());
        if (!legacy) {
            node.put("lastOffsetDelta", content.getInt(position + LAST_OFFSET_DELTA_AT));
            node.put("baseTimestamp", content.getLong(position + BASE_TIMESTAMP_AT)).put("count", batch.countOrNull());
            node.put("producerId", batch.producerId()).put("producerEpoch", batch.producerEpoch());
            node.put("baseSequence", batch.baseSequence()).put("lastSequence", batch.lastSequence());
            node.put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
            node.put("transactional", batch.isTransactional()).put("control", batch.isControlBatch());
            node.put("deleteHorizonMs",
                    batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        }
        ArrayNode records = node.putArray("records");
        for (Record record : batch) {
            records.add(decoded(record, batch.isControlBatch()));
        }
        return node;
    }

    private static ObjectNode decoded(Record record, boolean control) {
        ObjectNode node = JSON.objectNode();
        node.put("offset", record.offset()).put("timestamp", record.timestamp());
        if (record.sequence() != -1) {
            node.put("sequence", record.sequence());
        }
        node.put("key", base64(record.key())).put("value", base64(record.value()));
        if (record.headers().length > 0) {
            ArrayNode headers = node.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key())
                        .add(header.value() == null ? null : Base64.getEncoder().encodeToString(header.value()));
            }
        }
        if (control) {
            node.put("controlType", ControlRecordType.parse(record.key()).toString());
            node.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
        }
        return node;
    }

    static String base64(ByteBuffer bytes) {
        if (bytes == null) {
            return null;
        }
        byte[] copied = new byte[bytes.remaining()];
        bytes.duplicate().get(copied);
        return Base64.getEncoder().encodeToString(copied);
    }

    static String sha256(byte[] content) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
        } catch (NoSuchAlgorithmException absent) {
            throw new IllegalStateException(absent);
        }
    }
}
