import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.Utils;

/** Golden cases of java.util.Random and of the partitions of keys and groups, and the orders of Java's hash tables. */
final class Hashes {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Hashes() {
    }

    static ObjectNode random(JsonNode input) {
        Random random = new Random(input.get("seed").asLong());
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode results = expected.putArray("results");
        for (JsonNode operation : input.get("ops")) {
            switch (operation.get("op").asText()) {
                case "next_int" -> results.add(random.nextInt());
                case "next_int_bound" -> results.add(random.nextInt(operation.get("bound").asInt()));
                default -> {
                    List<Integer> items = new ArrayList<>();
                    for (int item = 0; item < operation.get("n").asInt(); item++) {
                        items.add(item);
                    }
                    Collections.shuffle(items, random);
                    results.add(JSON.valueToTree(items));
                }
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

    /** The order of a HashMap that is filled key by key, and of a HashSet that is made of all keys at once. */
    static ObjectNode orders(JsonNode input) {
        List<String> keys = new ArrayList<>();
        input.get("keys").forEach(key -> keys.add(key.isNull() ? null : key.asText()));
        Map<String, Integer> map = new HashMap<>();
        keys.forEach(key -> map.putIfAbsent(key, map.size()));
        ObjectNode expected = JSON.createObjectNode();
        expected.set("map", JSON.valueToTree(new ArrayList<>(map.keySet())));
        expected.set("set_copy", JSON.valueToTree(new ArrayList<>(new HashSet<>(keys))));
        return expected;
    }

    /** An object of a given hash that cannot be compared, as TopicPartition. */
    private static final class Key {
        final int hash;

        Key(int hash) {
            this.hash = hash;
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && key.hash == hash;
        }
    }

    /** Each hash is put into a set, or taken out if it is there: its first element after each, and all in the end. */
    static ObjectNode walked(JsonNode input) {
        Set<Key> set = new HashSet<>();
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode first = expected.putArray("first");
        for (JsonNode hash : input.get("hashes")) {
            Key key = new Key(hash.asInt());
            if (!set.remove(key)) {
                set.add(key);
            }
            first.add(set.isEmpty() ? 0 : set.iterator().next().hash);
        }
        ArrayNode left = expected.putArray("left");
        set.forEach(key -> left.add(key.hash));
        return expected;
    }
}
