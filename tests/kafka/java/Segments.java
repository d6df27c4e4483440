import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords.LogOffsetPosition;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.TimestampOffset;

/** Golden cases of kind `segment`: what appends write, and what look-ups and reads answer after a reopen. */
final class Segments {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Segments() {
    }

    static ObjectNode run(JsonNode input) throws IOException {
        File directory = new File(input.get("folder").asText(), "topic-0");
        Files.createDirectories(directory.toPath());
        LogConfig config = LogProgram.config(input.get("config"));
        long base = input.get("baseOffset").asLong();
        ObjectNode told = JSON.objectNode();
        LogSegment segment = LogSegment.open(directory, base, config, new ManualTime(0), 0, false);
        ArrayNode trace = told.putArray("appendTrace");
        for (JsonNode batches : input.get("appends")) {
            trace.add(appended(segment, batches));
        }
        told.put("preallocatedIndexBytes", segment.offsetIndex().file().length());
        told.put("preallocatedTimeIndexBytes", segment.timeIndex().file().length());
        told.put("nextOffset", segment.readNextOffset());
        TimestampOffset max = segment.readMaxTimestampAndOffsetSoFar();
        told.put("maxTimestamp", Fields.number(max, "timestamp")).put("offsetOfMaxTimestamp", Fields.number(max, "offset"));
        segment.onBecomeInactiveSegment();
        segment.close();
        told.set("files", LogFiles.listing(directory));
        LogSegment reopened = LogSegment.open(directory, base, config, new ManualTime(0), true, 0, false, "");
        lookUp(input, told, reopened);
        reopened.close();
        return told;
    }

    private static ObjectNode appended(LogSegment segment, JsonNode batches) throws IOException {
        List<MemoryRecords> parts = new ArrayList<>();
        batches.forEach(batch -> parts.add(LogBatches.build(batch)));
        MemoryRecords records = LogBatches.concatenate(parts);
        long lastOffset = -1;
        long largest = RecordBatch.NO_TIMESTAMP;
        long largestAt = -1;
        for (RecordBatch batch : records.batches()) {
            if (batch.maxTimestamp() > largest) {
                largest = batch.maxTimestamp();
                largestAt = batch.lastOffset();
            }
            lastOffset = batch.lastOffset();
        }
        ObjectNode row = JSON.objectNode().put("position", segment.size()).put("sizeInBytes", records.sizeInBytes());
        row.put("largestOffset", lastOffset).put("largestTimestamp", largest);
        row.put("shallowOffsetOfMaxTimestamp", largestAt);
        ObjectNode result = row.putObject("result");
        try {
            segment.append(lastOffset, records);
        } catch (RuntimeException refusal) {
            result.put("exception", refusal.getClass().getSimpleName());
        }
        return row.put("indexEntries", segment.offsetIndex().entries())
                .put("timeIndexEntries", segment.timeIndex().entries());
    }

    private static void lookUp(JsonNode input, ObjectNode told, LogSegment segment) throws IOException {
        ArrayNode offsets = told.putArray("offsetLookups");
        for (JsonNode target : input.get("offsets")) {
            OffsetPosition entry = segment.offsetIndex().lookup(target.asLong());
            ArrayNode row = offsets.addArray().add(target.asLong());
            row.add(Fields.number(entry, "offset")).add(Fields.number(entry, "position"));
            LogOffsetPosition found = segment.translateOffset(target.asLong());
            if (found == null) {
                row.addNull().addNull().addNull();
            } else {
                FileChannelRecordBatch batch = segment.log().batchesFrom(found.position).iterator().next();
                row.add(batch.lastOffset()).add(found.position).add(found.size);
            }
        }
        ArrayNode timestamps = told.putArray("timestampLookups");
        for (JsonNode asked : input.get("timestamps")) {
            long target = asked.get(0).asLong();
            TimestampOffset entry = segment.timeIndex().lookup(target);
            ArrayNode row = timestamps.addArray().add(target);
            row.add(Fields.number(entry, "timestamp")).add(Fields.number(entry, "offset"));
            addFound(row, Logs.findOffsetByTimestamp(segment, target, segment.baseOffset()));
            row.add(asked.get(1).asLong());
            addFound(row, Logs.findOffsetByTimestamp(segment, target, asked.get(1).asLong()));
        }
        ArrayNode reads = told.putArray("reads");
        for (JsonNode asked : input.get("reads")) {
            FetchDataInfo read = segment.read(asked.get(0).asLong(), asked.get(1).asInt(),
                    Optional.of((long) segment.size()), asked.get(2).asBoolean());
            ArrayNode row = reads.addArray().addAll((ArrayNode) asked);
            if (read == null) {
                row.addNull().addNull();
            } else {
                row.add(read.fetchOffsetMetadata.relativePositionInSegment).add(read.records.sizeInBytes());
            }
        }
    }

    private static void addFound(ArrayNode row, Optional<TimestampAndOffset> found) {
        if (found.isEmpty()) {
            row.addNull().addNull();
        } else {
            row.add(found.get().offset).add(found.get().timestamp);
        }
    }
}
