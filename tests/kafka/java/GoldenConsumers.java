import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Golden cases of client-side assignors: one assignor is called once for each step, as it remembers generations. */
final class GoldenConsumers {
    private static final ObjectMapper JSON = new ObjectMapper();

    private GoldenConsumers() {
    }

    static ObjectNode steps(JsonNode input) {
        String name = input.get("assignor").asText();
        ConsumerPartitionAssignor assignor = Assignors.clientAssignor(name);
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode steps = expected.putArray("steps");
        for (JsonNode step : input.get("steps")) {
            var answer = assignor.assign(cluster(step), subscriptions(step, name)).groupAssignment();
            ObjectNode assignment = steps.addObject().putObject("assignment");
            for (var member : new TreeMap<>(answer).entrySet()) {
                ArrayNode partitions = assignment.putArray(member.getKey());
                for (TopicPartition partition : member.getValue().partitions()) {
                    partitions.addArray().add(partition.topic()).add(partition.partition());
                }
            }
        }
        return expected;
    }

    /** One broker for each rack, and one without; a partition without racks is on that one. */
    private static Cluster cluster(JsonNode step) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (JsonNode topic : step.get("topics")) {
            for (int number = 0; number < topic.get("partitions").asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                if (topic.has("replica_racks")) {
                    topic.get("replica_racks").get(number).forEach(rack -> replicas.add(node(nodes, text(rack))));
                } else {
                    replicas.add(node(nodes, null));
                }
                Node leader = replicas.isEmpty() ? Node.noNode() : replicas.get(0);
                Node[] array = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.get("name").asText(), number, leader, array, array));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static Node node(Map<String, Node> nodes, String rack) {
        return nodes.computeIfAbsent(String.valueOf(rack), key -> new Node(nodes.size(), "host", 9092, rack));
    }

    private static GroupSubscription subscriptions(JsonNode step, String assignor) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : step.get("members")) {
            List<String> topics = new ArrayList<>();
            member.get("topics").forEach(topic -> topics.add(topic.asText()));
            List<TopicPartition> owned = new ArrayList<>();
            member.path("owned").forEach(
                    pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
            Subscription subscription = new Subscription(topics, userData(member.path("user_data"), assignor), owned,
                    member.path("generation").asInt(-1), Optional.ofNullable(text(member.path("rack"))));
            subscription.setGroupInstanceId(Optional.ofNullable(text(member.path("instance_id"))));
            subscriptions.put(member.get("id").asText(), subscription);
        }
        return new GroupSubscription(subscriptions);
    }

    /** What the member's assignor sent: the sticky one what it held and the generation, the cooperative one that. */
    private static ByteBuffer userData(JsonNode data, String assignor) {
        if (data.isNull() || data.isMissingNode()) {
            return null;
        }
        if (assignor.equals("cooperative-sticky")) {
            return ByteBuffer.allocate(Integer.BYTES).putInt(0, data.get("generation").asInt());
        }
        List<String> names = new ArrayList<>();
        List<List<Integer>> numbers = new ArrayList<>();
        for (JsonNode pair : data.get("partitions")) {
            String topic = pair.get(0).asText();
            if (names.isEmpty() || !names.get(names.size() - 1).equals(topic)) {
                names.add(topic);
                numbers.add(new ArrayList<>());
            }
            numbers.get(numbers.size() - 1).add(pair.get(1).asInt());
        }
        return encoded(names, numbers, data.get("generation").asInt());
    }

    private static ByteBuffer encoded(List<String> names, List<List<Integer>> numbers, int generation) {
        int size = 2 * Integer.BYTES;
        for (int i = 0; i < names.size(); i++) {
            size += Short.BYTES + names.get(i).getBytes(StandardCharsets.UTF_8).length
                    + Integer.BYTES * (1 + numbers.get(i).size());
        }
        ByteBuffer data = ByteBuffer.allocate(size).putInt(names.size());
        for (int i = 0; i < names.size(); i++) {
            byte[] name = names.get(i).getBytes(StandardCharsets.UTF_8);
            data.putShort((short) name.length).put(name).putInt(numbers.get(i).size());
            numbers.get(i).forEach(data::putInt);
        }
        return data.putInt(generation).flip();
    }

    private static String text(JsonNode node) {
        return node.isNull() || node.isMissingNode() ? null : node.asText();
    }
}
