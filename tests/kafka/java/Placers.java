import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

//@ before 4.1
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
//@ end
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.TopicAssignment;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Golden cases of the placers, and the CPU time of their calls. AdminUtils, the classic placer, went after 4.0. */
final class Placers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Read from every timed result, so that no work can be optimised away. */
    private static long checksum;

    private Placers() {
    }

    /** Answer a call of AdminUtils.assignReplicasToBrokers; a start index below 0 is drawn from the seeded generator. */
    static ObjectNode classic(JsonNode input) throws ReflectiveOperationException {
        //@ before 4.1
        List<BrokerMetadata> brokers = new ArrayList<>();
        Map<Integer, String> racks = new HashMap<>();
        for (JsonNode broker : input.get("brokers")) {
            brokers.add(new BrokerMetadata(broker.get("id").asInt(), rack(broker)));
            racks.put(broker.get("id").asInt(), rack(broker).orElse(null));
        }
        int start = input.get("start_partition_id").asInt();
        if (input.hasNonNull("random_seed")) {
            Field generator = AdminUtils.class.getDeclaredField("RAND");
            generator.setAccessible(true);
            ((Random) generator.get(null)).setSeed(input.get("random_seed").asLong());
        }
        Map<Integer, List<Integer>> placed = new TreeMap<>(AdminUtils.assignReplicasToBrokers(
                brokers, input.get("partitions").asInt(), input.get("replication_factor").asInt(),
                input.get("fixed_start_index").asInt(), start));
        ObjectNode expected = JSON.createObjectNode();
        boolean racked = brokers.stream().allMatch(broker -> broker.rack.isPresent());
        expected.set("rack_alternated_brokers",
                JSON.valueToTree(racked ? AdminUtils.getRackAlternatedBrokerList(racks) : null));
        expected.put("first_partition", Math.max(0, start));
        expected.set("replicas", JSON.valueToTree(new ArrayList<>(placed.values())));
        return expected;
        //@ end
        //@ since 4.1
        throw new UnsupportedOperationException("this release has no AdminUtils");
        //@ end
    }

    /** Answer several calls of one StripedReplicaPlacer; the refusal of an only call is the case's. */
    static ObjectNode striped(JsonNode input) {
        Random random = new Random(input.get("random_seed").asLong());
        ClusterDescriber cluster = describer(input.get("brokers"));
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode calls = expected.putArray("calls");
        for (JsonNode call : input.get("calls")) {
            ObjectNode told = calls.addObject();
            try {
                List<List<Integer>> rows = new ArrayList<>();
                striped(random, cluster, call.get("start_partition").asInt(), call.get("partitions").asInt(),
                        call.get("replication_factor").asInt()).assignments().forEach(row -> rows.add(row.replicas()));
                told.set("replicas", JSON.valueToTree(rows));
            } catch (RuntimeException refusal) {
                if (input.get("calls").size() == 1) {
                    throw refusal;
                }
                told.putObject("error").put("class", refusal.getClass().getName()).put("message", refusal.getMessage());
            }
        }
        return expected.put("next_int_after", random.nextInt());
    }

    /**
     * CPU nanoseconds of one call's thread, the input made beforehand and the result discarded. Collecting garbage
     * runs on other threads and is not counted, in Kafka's favour.
     */
    static ObjectNode times(JsonNode input) {
        int partitions = input.get("partitions").asInt();
        int factor = input.get("replication_factor").asInt();
        long begin;
        if (input.get("placer").asText().equals("striped")) {
            ClusterDescriber cluster = describer(input.get("brokers"));
            Random random = new Random(1);
            begin = THREADS.getCurrentThreadCpuTime();
            checksum += striped(random, cluster, 0, partitions, factor).assignments().get(partitions - 1).replicas().get(0);
        } else {
            //@ before 4.1
            List<BrokerMetadata> brokers = new ArrayList<>();
            input.get("brokers").forEach(each -> brokers.add(new BrokerMetadata(each.get("id").asInt(), rack(each))));
            begin = THREADS.getCurrentThreadCpuTime();
            checksum += AdminUtils.assignReplicasToBrokers(brokers, partitions, factor, 0, 0).get(partitions - 1).get(0);
            //@ end
            //@ since 4.1
            throw new UnsupportedOperationException("this release has no AdminUtils");
            //@ end
        }
        return JSON.createObjectNode().put("cpuNs", THREADS.getCurrentThreadCpuTime() - begin).put("sum", checksum);
    }

    private static TopicAssignment striped(Random random, ClusterDescriber cluster, int start, int count, int factor) {
        return new StripedReplicaPlacer(random).place(new PlacementSpec(start, count, (short) factor), cluster);
    }

    private static Optional<String> rack(JsonNode broker) {
        return broker.hasNonNull("rack") ? Optional.of(broker.get("rack").asText()) : Optional.empty();
    }

    private static ClusterDescriber describer(JsonNode brokers) {
        List<UsableBroker> usable = new ArrayList<>();
        for (JsonNode broker : brokers) {
            boolean fenced = broker.path("fenced").asBoolean(false);
            usable.add(new UsableBroker(broker.get("id").asInt(), rack(broker), fenced));
        }
        return new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return usable.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
    }
}
