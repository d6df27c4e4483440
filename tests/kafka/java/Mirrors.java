//@ file mirror
// In MirrorMaker's own package, as the classes that decide are visible in it only.
package org.apache.kafka.connect.mirror;

import java.util.HexFormat;
import java.util.Map;
import java.util.OptionalLong;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** MirrorMaker's stores of offset syncs, its rule of when to write one, its names of topics, and its records. */
public final class Mirrors {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private Mirrors() {
    }

    /** Answer what `of` names. */
    public static JsonNode answer(JsonNode input) {
        return switch (input.get("of").asText()) {
            case "store" -> store(input);
            case "rule" -> rule(input);
            case "policy" -> policy(input);
            case "sync" -> {
                OffsetSync sync = new OffsetSync(at(input), number(input, "upstream"), number(input, "downstream"));
                yield row(hex(sync.recordKey()), hex(sync.recordValue()));
            }
            case "checkpoint" -> {
                Checkpoint point = new Checkpoint(text(input, "group"), at(input), number(input, "upstream"),
                    number(input, "downstream"), text(input, "metadata"));
                yield row(hex(point.recordKey()), hex(point.recordValue()));
            }
            default -> throw new IllegalArgumentException("no mirror " + input.get("of"));
        };
    }

    /** What a store keeps of syncs, which it has read to the end before sync number `read_before`, and translates. */
    private static ObjectNode store(JsonNode input) {
        OffsetSyncStore store = new OffsetSyncStore();
        store.initializationMustReadToEnd = input.get("must_read_to_end").asBoolean();
        JsonNode syncs = input.get("syncs");
        for (int i = 0; i <= syncs.size(); i++) {
            if (i == input.get("read_before").asInt()) {
                store.readToEnd = true;
            }
            if (i < syncs.size()) {
                OffsetSync sync = new OffsetSync(PARTITION, syncs.get(i).get(0).asLong(), syncs.get(i).get(1).asLong());
                store.handleRecord(new ConsumerRecord<>("s", 0, i, sync.recordKey(), sync.recordValue()));
            }
        }
        ObjectNode answer = JSON.objectNode();
        ArrayNode kept = answer.putArray("kept");
        for (int i = 0; !syncs.isEmpty() && i < OffsetSyncStore.SYNCS_PER_PARTITION; i++) {
            OffsetSync sync = store.syncFor(PARTITION, i);
            kept.addArray().add(sync.upstreamOffset()).add(sync.downstreamOffset());
        }
        ArrayNode translated = answer.putArray("translated");
        for (JsonNode query : input.get("queries")) {
            OptionalLong offset = store.translateDownstream("g", PARTITION, query.asLong());
            translated.add(offset.isPresent() ? (Long) offset.getAsLong() : null);
        }
        return answer;
    }

    /** Whether the offsets of each copied record are written at once. */
    private static ArrayNode rule(JsonNode input) {
        OffsetSyncWriter.PartitionState state = new OffsetSyncWriter.PartitionState(number(input, "lag_max"));
        ArrayNode answer = JSON.arrayNode();
        for (JsonNode pair : input.get("pairs")) {
            boolean isWritten = state.update(pair.get(0).asLong(), pair.get(1).asLong());
            if (isWritten) {
                state.reset();
            }
            answer.add(isWritten);
        }
        return answer;
    }

    private static ArrayNode policy(JsonNode input) {
        DefaultReplicationPolicy policy = new DefaultReplicationPolicy();
        policy.configure(Map.of());
        String topic = text(input, "topic");
        MirrorSourceConnector connector = new MirrorSourceConnector(
            new SourceAndTarget("one", "two"), policy, each -> true, each -> true);
        return row(policy.formatRemoteTopic("one", topic), policy.topicSource(topic), policy.upstreamTopic(topic),
                policy.originalTopic(topic))
            .add(policy.isInternalTopic(topic)).add(connector.isCycle(topic)).add(connector.shouldReplicateTopic(topic));
    }

    private static ArrayNode row(String... texts) {
        ArrayNode row = JSON.arrayNode();
        for (String text : texts) {
            row.add(text);
        }
        return row;
    }

    private static TopicPartition at(JsonNode input) {
        return new TopicPartition(text(input, "topic"), input.get("partition").asInt());
    }

    private static String text(JsonNode input, String name) {
        return input.get(name).asText();
    }

    private static long number(JsonNode input, String name) {
        return input.get(name).asLong();
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
