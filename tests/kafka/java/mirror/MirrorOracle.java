// In MirrorMaker's own package, as the classes that decide are visible in it only.
package org.apache.kafka.connect.mirror;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.OptionalLong;
import java.util.StringJoiner;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Answers one line on standard output for each line on standard input; fields are separated by tabs.
 */
public final class MirrorOracle {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
            out.flush();
        }
    }

    private static String answer(String[] fields) {
        switch (fields[0]) {
            case "store":
                return store(fields);
            case "rule":
                return rule(fields);
            case "policy":
                return policy(fields);
            case "sync": {
                OffsetSync sync = new OffsetSync(at(fields, 1), Long.parseLong(fields[3]), Long.parseLong(fields[4]));
                return hex(sync.recordKey()) + "\t" + hex(sync.recordValue());
            }
            case "checkpoint": {
                Checkpoint point = new Checkpoint(
                    fields[5], at(fields, 1), Long.parseLong(fields[3]), Long.parseLong(fields[4]), fields[6]);
                return hex(point.recordKey()) + "\t" + hex(point.recordValue());
            }
            case "heartbeat": {
                Heartbeat beat = new Heartbeat(fields[1], fields[2], Long.parseLong(fields[3]));
                return hex(beat.recordKey()) + "\t" + hex(beat.recordValue());
            }
            default:
                throw new IllegalArgumentException(fields[0]);
        }
    }

    // store, whether it must read to the end, how many syncs it reads before that, syncs u:d, queries
    private static String store(String[] fields) {
        OffsetSyncStore store = new OffsetSyncStore();
        store.initializationMustReadToEnd = fields[1].equals("1");
        int before = Integer.parseInt(fields[2]);
        String[] syncs = fields[3].isEmpty() ? new String[0] : fields[3].split(",");
        for (int i = 0; i <= syncs.length; i++) {
            if (i == before) {
                store.readToEnd = true;
            }
            if (i < syncs.length) {
                String[] pair = syncs[i].split(":");
                OffsetSync sync = new OffsetSync(PARTITION, Long.parseLong(pair[0]), Long.parseLong(pair[1]));
                store.handleRecord(new ConsumerRecord<>("s", 0, i, sync.recordKey(), sync.recordValue()));
            }
        }
        StringJoiner kept = new StringJoiner(",");
        for (int i = 0; syncs.length > 0 && i < OffsetSyncStore.SYNCS_PER_PARTITION; i++) {
            OffsetSync sync = store.syncFor(PARTITION, i);
            kept.add(sync.upstreamOffset() + ":" + sync.downstreamOffset());
        }
        StringJoiner translated = new StringJoiner(",");
        for (String query : fields[4].split(",")) {
            OptionalLong offset = store.translateDownstream("g", PARTITION, Long.parseLong(query));
            translated.add(offset.isPresent() ? Long.toString(offset.getAsLong()) : "none");
        }
        return kept + "\t" + translated;
    }

    // rule, lag, pairs u:d
    private static String rule(String[] fields) {
        OffsetSyncWriter.PartitionState state = new OffsetSyncWriter.PartitionState(Long.parseLong(fields[1]));
        StringBuilder told = new StringBuilder();
        for (String each : fields[2].split(",")) {
            String[] pair = each.split(":");
            boolean isTold = state.update(Long.parseLong(pair[0]), Long.parseLong(pair[1]));
            if (isTold) {
                state.reset();
            }
            told.append(isTold ? '1' : '0');
        }
        return told.toString();
    }

    // policy, default or identity, separator, whether internal names have it, alias of the source, topic
    private static String policy(String[] fields) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(DefaultReplicationPolicy.SEPARATOR_CONFIG, fields[2]);
        settings.put(DefaultReplicationPolicy.INTERNAL_TOPIC_SEPARATOR_ENABLED_CONFIG, fields[3]);
        if (!fields[4].isEmpty()) {
            settings.put(IdentityReplicationPolicy.SOURCE_CLUSTER_ALIAS_CONFIG, fields[4]);
        }
        DefaultReplicationPolicy policy =
            fields[1].equals("identity") ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
        policy.configure(settings);
        String topic = fields[5];
        MirrorSourceConnector connector = new MirrorSourceConnector(
            new SourceAndTarget("one", "two"), policy, each -> !each.startsWith("un"), each -> true);
        return String.join("\t",
            policy.formatRemoteTopic("one", topic),
            String.valueOf(policy.topicSource(topic)),
            String.valueOf(policy.upstreamTopic(topic)),
            policy.originalTopic(topic),
            policy.offsetSyncsTopic("two"),
            policy.checkpointsTopic("one"),
            String.valueOf(policy.isHeartbeatsTopic(topic)),
            String.valueOf(policy.isInternalTopic(topic)),
            String.valueOf(connector.isCycle(topic)),
            String.valueOf(connector.shouldReplicateTopic(topic)));
    }

    private static TopicPartition at(String[] fields, int place) {
        return new TopicPartition(fields[place], Integer.parseInt(fields[place + 1]));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
