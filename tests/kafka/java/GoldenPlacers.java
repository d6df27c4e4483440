import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.placement.ClusterDescriber;

/** Golden cases of the placers, of java.util.Random, and of the partitions of keys and groups. */
final class GoldenPlacers {
    private static final ObjectMapper JSON = new ObjectMapper();

    private GoldenPlacers() {
    }

    /** Answer a call of AdminUtils.assignReplicasToBrokers; a start index below 0 is drawn from the seeded generator. */
    static ObjectNode classic(JsonNode input) throws ReflectiveOperationException {
        List<Placers.Broker> brokers = brokers(input);
        int start = input.get("start_partition_id").asInt();
        if (input.hasNonNull("random_seed")) {
            Classic.generator().setSeed(input.get("random_seed").asLong());
        }
        var placed = Classic.rows(brokers, input.get("partitions").asInt(), input.get("replication_factor").asInt(),
                input.get("fixed_start_index").asInt(), start);
        ObjectNode expected = JSON.createObjectNode();
        boolean racked = brokers.stream().allMatch(broker -> broker.rack != null);
        expected.set("rack_alternated_brokers", JSON.valueToTree(racked ? Classic.rackAlternated(brokers) : null));
        expected.put("first_partition", Math.max(0, start));
        expected.set("replicas", JSON.valueToTree(new ArrayList<>(placed.values())));
        return expected;
    }

    /** Answer several calls of one StripedReplicaPlacer; the refusal of an only call is the case's. */
    static ObjectNode striped(JsonNode input) {
        Random random = new Random(input.get("random_seed").asLong());
        ClusterDescriber cluster = Placers.describer(brokers(input));
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode calls = expected.putArray("calls");
        for (JsonNode call : input.get("calls")) {
            try {
                calls.addObject().set("replicas", JSON.valueToTree(Placers.rows(Placers.striped(random, cluster,
                        call.get("start_partition").asInt(), call.get("partitions").asInt(),
                        call.get("replication_factor").asInt()))));
            } catch (RuntimeException refusal) {
                if (input.get("calls").size() == 1) {
                    throw refusal;
                }
                ((ObjectNode) calls.get(calls.size() - 1)).putObject("error")
                        .put("class", refusal.getClass().getName()).put("message", refusal.getMessage());
            }
        }
        return expected.put("next_int_after", random.nextInt());
    }

    static ObjectNode random(JsonNode input) {
        Random random = new Random(input.get("seed").asLong());
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode results = expected.putArray("results");
        for (JsonNode operation : input.get("ops")) {
            switch (operation.get("op").asText()) {
                case "next_int": results.add(random.nextInt()); break;
                case "next_int_bound": results.add(random.nextInt(operation.get("bound").asInt())); break;
                default:
                    List<Integer> items = new ArrayList<>();
                    for (int item = 0; item < operation.get("n").asInt(); item++) {
                        items.add(item);
                    }
                    Collections.shuffle(items, random);
                    results.add(JSON.valueToTree(items));
            }
        }
        return expected;
    }

    /** As the producer's BuiltInPartitioner places a key. */
    static ObjectNode keyPartition(JsonNode input) {
        int hash = Utils.murmur2(HexFormat.of().parseHex(input.get("key_hex").asText()));
        int positive = Utils.toPositive(hash);
        return JSON.createObjectNode().put("murmur2", hash).put("positive", positive)
                .put("partition", positive % input.get("partitions").asInt());
    }

    /** As the group coordinator places a group. */
    static ObjectNode groupPartition(JsonNode input) {
        int hash = input.get("group_id").asText().hashCode();
        return JSON.createObjectNode().put("hash_code", hash).put("abs", Utils.abs(hash))
                .put("partition", Utils.abs(hash) % input.get("partitions").asInt());
    }

    private static List<Placers.Broker> brokers(JsonNode input) {
        List<Placers.Broker> brokers = new ArrayList<>();
        for (JsonNode broker : input.get("brokers")) {
            String rack = broker.get("rack").isNull() ? null : broker.get("rack").asText();
            brokers.add(new Placers.Broker(broker.get("id").asInt(), rack, broker.path("fenced").asBoolean(false)));
        }
        return brokers;
    }
}
