import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Golden cases of client-side assignors: one assignor is called once for each step, as it remembers generations. */
final class ClientAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SECONDS_MAX = 20;
    private static JsonNode lastStep;

    private ClientAssignors() {
    }

    static ObjectNode steps(JsonNode input) throws Exception {
        String name = input.get("assignor").asText();
        ConsumerPartitionAssignor assignor = assignor(name);
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode steps = expected.putArray("steps");
        for (JsonNode step : input.get("steps")) {
            var answer = ended(() -> assignor.assign(cluster(step), subscriptions(step, name)).groupAssignment());
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

    /** The first step of the input, or of the one before where it has none: large groups are sent once. */
    static JsonNode firstStep(JsonNode input) {
        lastStep = input.has("steps") ? input.get("steps").get(0) : lastStep;
        return lastStep;
    }

    /** CPU nanoseconds of the first step's call. */
    static ObjectNode time(JsonNode input) {
        JsonNode step = firstStep(input);
        String name = input.get("assignor").asText();
        ConsumerPartitionAssignor assignor = assignor(name);
        Cluster cluster = cluster(step);
        GroupSubscription subscriptions = subscriptions(step, name);
        long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        int size = assignor.assign(cluster, subscriptions).groupAssignment().size();
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        return JSON.createObjectNode().put("cpuNs", end - begin).put("size", size);
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no assignor " + name);
        };
    }

    /** What a call returns or throws; a TimeoutException where it does not end: sticky assignors loop for ever on some. */
    @SuppressWarnings({"deprecation", "removal"})
    private static <T> T ended(Callable<T> call) throws Exception {
        FutureTask<T> task = new FutureTask<>(call);
        Thread caller = new Thread(task);
        caller.setDaemon(true);
        caller.start();
        try {
            return task.get(SECONDS_MAX, TimeUnit.SECONDS);
        } catch (ExecutionException thrown) {
            throw thrown.getCause() instanceof RuntimeException refusal ? refusal : thrown;
        } catch (TimeoutException endless) {
            try {
                caller.stop();
            } catch (UnsupportedOperationException newer) {
                // From Java 20 on, a thread cannot be stopped: it goes on until the process ends.
            }
            throw new TimeoutException("no end within " + SECONDS_MAX + " seconds");
        }
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
