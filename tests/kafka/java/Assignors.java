import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Kafka's own assignors on standard input and output: one group after another, until the input ends.
 * A client-side assignor lives until another one is asked for, as the sticky ones remember generations.
 */
public final class Assignors {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Wire wire;
    private ConsumerPartitionAssignor client;

    /** A group as it comes over the wire; `owned` are pairs of topic index and partition. */
    static final class Group {
        final List<String> topics = new ArrayList<>();
        final List<Integer> counts = new ArrayList<>();
        final List<List<List<String>>> racks = new ArrayList<>();
        final List<Member> members = new ArrayList<>();
    }

    static final class Member {
        String id;
        String instance;
        String rack;
        int generation;
        int subscriptionGeneration;
        int[] topics;
        int[] owned;
    }

    private static final int SECONDS_MAX = 20;

    private Assignors(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] arguments) throws Exception {
        java.io.PrintStream answers = System.out;
        System.setOut(System.err);
        new Assignors(new Wire(System.in, answers)).run();
    }

    /**
     * 'N' name: a new assignor. 'A' group: its answer. 'T' rounds, group: CPU nanoseconds of each round.
     * 'S' operations: a HashSet's first element after each, and all of them at the end.
     */
    private void run() throws Exception {
        String name = "";
        int operation = wire.readByteOrEnd();
        while (operation >= 0) {
            if (operation == 'N') {
                name = wire.readString();
                client = clientAssignor(name);
            } else if (operation == 'A') {
                answer(name, readGroup());
                wire.flush();
            } else if (operation == 'S') {
                walkSet();
                wire.flush();
            } else {
                int rounds = wire.readInt();
                time(name, readGroup(), rounds);
                wire.flush();
            }
            operation = wire.readByteOrEnd();
        }
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
            return other instanceof Key && ((Key) other).hash == hash;
        }
    }

    /** Each hash is put in, or taken out if it is there. */
    private void walkSet() throws Exception {
        Set<Key> set = new HashSet<>();
        int count = wire.readInt();
        for (int i = 0; i < count; i++) {
            Key key = new Key(wire.readInt());
            if (!set.remove(key)) {
                set.add(key);
            }
            wire.writeInt(set.isEmpty() ? 0 : set.iterator().next().hash);
        }
        List<Integer> left = new ArrayList<>();
        set.forEach(key -> left.add(key.hash));
        wire.writeInts(left);
    }

    static ConsumerPartitionAssignor clientAssignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: return null;
        }
    }

    static ConsumerGroupPartitionAssignor serverAssignor(String name) {
        return name.equals("uniform")
                ? new UniformAssignor()
                : new org.apache.kafka.coordinator.group.assignor.RangeAssignor();
    }

    private Group readGroup() throws Exception {
        Group group = new Group();
        int topics = wire.readInt();
        for (int i = 0; i < topics; i++) {
            group.topics.add(wire.readString());
            group.counts.add(wire.readInt());
            int rows = wire.readInt();
            List<List<String>> racks = rows < 0 ? null : new ArrayList<>();
            for (int row = 0; row < rows; row++) {
                racks.add(wire.readStrings());
            }
            group.racks.add(racks);
        }
        int members = wire.readInt();
        for (int i = 0; i < members; i++) {
            Member member = new Member();
            member.id = wire.readString();
            member.instance = wire.readString();
            member.rack = wire.readString();
            member.generation = wire.readInt();
            member.subscriptionGeneration = wire.readInt();
            member.topics = readInts();
            member.owned = readInts();
            group.members.add(member);
        }
        return group;
    }

    private int[] readInts() throws Exception {
        int[] values = new int[wire.readInt()];
        for (int i = 0; i < values.length; i++) {
            values[i] = wire.readInt();
        }
        return values;
    }

    private void answer(String name, Group group) throws Exception {
        try {
            if (client != null) {
                Map<String, ConsumerPartitionAssignor.Assignment> answer =
                        ended(() -> client.assign(cluster(group), subscriptions(name, group)).groupAssignment());
                wire.writeSuccess();
                wire.writeInt(answer.size());
                for (Map.Entry<String, ConsumerPartitionAssignor.Assignment> entry : answer.entrySet()) {
                    wire.writeString(entry.getKey());
                    wire.writeInt(entry.getValue().partitions().size());
                    for (TopicPartition partition : entry.getValue().partitions()) {
                        wire.writeInt(group.topics.indexOf(partition.topic()));
                        wire.writeInt(partition.partition());
                    }
                }
            } else {
                Map<String, MemberAssignment> answer =
                        ended(() -> serverAssignor(name).assign(groupSpec(group), describer(group)).members());
                wire.writeSuccess();
                wire.writeInt(answer.size());
                for (Map.Entry<String, MemberAssignment> entry : answer.entrySet()) {
                    wire.writeString(entry.getKey());
                    writeSets(group, entry.getValue().partitions());
                }
            }
        } catch (RuntimeException | TimeoutException error) {
            wire.writeError(error);
        }
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
            if (thrown.getCause() instanceof RuntimeException) {
                throw (RuntimeException) thrown.getCause();
            }
            throw thrown;
        } catch (TimeoutException endless) {
            try {
                caller.stop();
            } catch (UnsupportedOperationException newer) {
                // From Java 20 on, a thread cannot be stopped: it goes on until the process ends.
            }
            throw new TimeoutException("no end within " + SECONDS_MAX + " seconds");
        }
    }

    private void writeSets(Group group, Map<Uuid, Set<Integer>> partitions) throws Exception {
        int count = 0;
        for (Set<Integer> numbers : partitions.values()) {
            count += numbers.size();
        }
        wire.writeInt(count);
        for (Map.Entry<Uuid, Set<Integer>> topic : partitions.entrySet()) {
            for (int number : topic.getValue()) {
                wire.writeInt(group.topics.indexOf(topic.getKey().toString()));
                wire.writeInt(number);
            }
        }
    }

    private void time(String name, Group group, int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            long nanos;
            int size;
            if (client != null) {
                ConsumerPartitionAssignor assignor = clientAssignor(name);
                Cluster cluster = cluster(group);
                ConsumerPartitionAssignor.GroupSubscription subscriptions = subscriptions(name, group);
                long begin = THREADS.getCurrentThreadCpuTime();
                size = assignor.assign(cluster, subscriptions).groupAssignment().size();
                nanos = THREADS.getCurrentThreadCpuTime() - begin;
            } else {
                GroupSpec spec = groupSpec(group);
                SubscribedTopicDescriber describer = describer(group);
                long begin = THREADS.getCurrentThreadCpuTime();
                try {
                    size = serverAssignor(name).assign(spec, describer).members().size();
                } catch (RuntimeException refusal) {
                    size = -1; // What it throws is its answer, and takes time too.
                }
                nanos = THREADS.getCurrentThreadCpuTime() - begin;
            }
            wire.writeLong(nanos);
            wire.writeInt(size);
            wire.flush();
        }
    }

    private static Cluster cluster(Group group) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int topic = 0; topic < group.topics.size(); topic++) {
            for (int number = 0; number < group.counts.get(topic); number++) {
                List<String> racks = group.racks.get(topic) == null
                        ? Collections.singletonList(null)
                        : group.racks.get(topic).get(number);
                Node[] replicas = new Node[racks.size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = racks.get(i);
                    replicas[i] = nodes.computeIfAbsent(
                            String.valueOf(rack), key -> new Node(nodes.size(), "host", 9092, rack));
                }
                Node leader = replicas.length == 0 ? Node.noNode() : replicas[0];
                partitions.add(new PartitionInfo(group.topics.get(topic), number, leader, replicas, replicas));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static ConsumerPartitionAssignor.GroupSubscription subscriptions(String name, Group group) {
        Map<String, ConsumerPartitionAssignor.Subscription> subscriptions = new HashMap<>();
        for (Member member : group.members) {
            List<String> topics = new ArrayList<>(member.topics.length);
            for (int topic : member.topics) {
                topics.add(group.topics.get(topic));
            }
            List<TopicPartition> owned = new ArrayList<>();
            if (name.equals("cooperative-sticky")) {
                for (int i = 0; i < member.owned.length; i += 2) {
                    owned.add(new TopicPartition(group.topics.get(member.owned[i]), member.owned[i + 1]));
                }
            }
            ConsumerPartitionAssignor.Subscription subscription = new ConsumerPartitionAssignor.Subscription(
                    topics, userData(name, group, member), owned, member.subscriptionGeneration,
                    Optional.ofNullable(member.rack));
            subscription.setGroupInstanceId(Optional.ofNullable(member.instance));
            subscriptions.put(member.id, subscription);
        }
        return new ConsumerPartitionAssignor.GroupSubscription(subscriptions);
    }

    /** What a member of that assignor sends: the sticky one all it held and the generation, the cooperative one that alone. */
    private static ByteBuffer userData(String name, Group group, Member member) {
        if (name.equals("cooperative-sticky")) {
            return ByteBuffer.allocate(4).putInt(0, member.generation);
        }
        if (!name.equals("sticky")) {
            return null;
        }
        List<byte[]> names = new ArrayList<>();
        int size = 8;
        for (int i = 0; i < member.owned.length; i += 2) {
            if (i == 0 || member.owned[i] != member.owned[i - 2]) {
                byte[] encoded = group.topics.get(member.owned[i]).getBytes(StandardCharsets.UTF_8);
                names.add(encoded);
                size += 2 + encoded.length + 4;
            }
            size += 4;
        }
        ByteBuffer data = ByteBuffer.allocate(size).putInt(names.size());
        int next = 0;
        for (byte[] encoded : names) {
            int end = next;
            while (end < member.owned.length && member.owned[end] == member.owned[next]) {
                end += 2;
            }
            data.putShort((short) encoded.length).put(encoded).putInt((end - next) / 2);
            for (; next < end; next += 2) {
                data.putInt(member.owned[next + 1]);
            }
        }
        data.putInt(member.generation).flip();
        return data;
    }

    static GroupSpec groupSpec(Group group) {
        List<Uuid> ids = new ArrayList<>();
        group.topics.forEach(topic -> ids.add(Uuid.fromString(topic)));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (Member member : group.members) {
            Set<Uuid> topics = subscribedIds(group, member, ids);
            subscriptions.add(topics);
            Map<Uuid, Set<Integer>> listed = new HashMap<>();
            for (int i = 0; i < member.owned.length; i += 2) {
                Uuid topic = ids.get(member.owned[i]);
                listed.computeIfAbsent(topic, key -> new TreeSet<>()).add(member.owned[i + 1]);
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(member.owned[i + 1], member.id);
            }
            // As Assignment.fromRecord makes it: partitions were given in the order of the subscribed topics.
            Set<Uuid> order = new LinkedHashSet<>(new HashSet<>(topics));
            group.topics.forEach(topic -> order.add(Uuid.fromString(topic)));
            Map<Uuid, Set<Integer>> held = order.stream().filter(listed::containsKey).collect(
                    Collectors.toMap(topic -> topic, topic -> new HashSet<>(new ArrayList<>(listed.get(topic)))));
            members.put(member.id, new MemberSubscriptionAndAssignmentImpl(
                    Optional.ofNullable(member.rack), Optional.ofNullable(member.instance), topics,
                    new Assignment(Collections.unmodifiableMap(held))));
        }
        SubscriptionType type = subscriptions.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
        return new GroupSpecImpl(members, type, owners);
    }

    /** A member's names come sorted and are kept in a hash set; ids are looked up in the order in which it is walked. */
    private static Set<Uuid> subscribedIds(Group group, Member member, List<Uuid> ids) {
        Set<String> sorted = new TreeSet<>();
        for (int topic : member.topics) {
            sorted.add(group.topics.get(topic));
        }
        Set<Uuid> topics = new LinkedHashSet<>();
        for (String name : new HashSet<>(new ArrayList<>(sorted))) {
            topics.add(ids.get(group.topics.indexOf(name)));
        }
        return topics;
    }

    /** Partition counts by topic id. Kafka's own describer is made from another class in each release. */
    static SubscribedTopicDescriber describer(Group group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (int topic = 0; topic < group.topics.size(); topic++) {
            if (group.counts.get(topic) >= 0) {
                counts.put(Uuid.fromString(group.topics.get(topic)), group.counts.get(topic));
            }
        }
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Collections.emptySet();
            }
        };
    }
}
