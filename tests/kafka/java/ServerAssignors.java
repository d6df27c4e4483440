import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Golden cases of the group coordinator's assignors; topics are named by their ids. */
final class ServerAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int ABSENT = -1;

    /** A group of which topics have numbers; `owned` are pairs of topic number and partition. */
    private static final class Group {
        final List<String> topics = new ArrayList<>();
        final List<Integer> counts = new ArrayList<>();
        final List<Member> members = new ArrayList<>();
    }

    private static final class Member {
        String id;
        String instance;
        int[] topics;
        int[] owned;
    }

    private ServerAssignors() {
    }

    static ObjectNode steps(JsonNode input) {
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode steps = expected.putArray("steps");
        boolean goesOn = input.path("goes_on").asBoolean();
        Map<String, Assignment> targets = new HashMap<>();
        for (JsonNode step : input.get("steps")) {
            Group group = group(step);
            Map<String, MemberAssignment> answer = assignor(input.get("assignor").asText())
                    .assign(groupSpec(group, goesOn ? targets : listed(group)), describer(group)).members();
            targets = replayed(group, answer, targets);
            ObjectNode assignment = steps.addObject().putObject("assignment");
            for (Map.Entry<String, MemberAssignment> member : new TreeMap<>(answer).entrySet()) {
                ArrayNode topics = assignment.putArray(member.getKey());
                for (Map.Entry<Uuid, Set<Integer>> topic : new TreeMap<>(member.getValue().partitions()).entrySet()) {
                    ArrayNode numbers = topics.addArray().add(topic.getKey().toString()).addArray();
                    new TreeSet<>(topic.getValue()).forEach(numbers::add);
                }
            }
        }
        return expected;
    }

    /** The target of each member as the coordinator has it after it replayed the records of an answer. */
    private static Map<String, Assignment> replayed(
            Group group, Map<String, MemberAssignment> answer, Map<String, Assignment> before) {
        Map<String, Assignment> targets = new HashMap<>();
        for (Member member : group.members) {
            MemberAssignment given = answer.get(member.id);
            Map<Uuid, Set<Integer>> target = given == null ? Map.of() : given.partitions();
            Assignment old = before.get(member.id);
            // Where nothing changes, no record is written.
            boolean isSame = old != null && old.partitions().equals(target);
            targets.put(member.id, isSame ? old : replayed(member.id, target));
        }
        return targets;
    }

    private static Assignment replayed(String member, Map<Uuid, Set<Integer>> target) {
        return Assignment.fromRecord((ConsumerGroupTargetAssignmentMemberValue) GroupCoordinatorRecordHelpers
                .newConsumerGroupTargetAssignmentRecord("group", member, target).value().message());
    }

    /** CPU nanoseconds of the first step's call; what it throws is an answer too, and takes time. */
    static ObjectNode time(JsonNode input) {
        Group group = group(ClientAssignors.firstStep(input));
        ConsumerGroupPartitionAssignor assignor = assignor(input.get("assignor").asText());
        GroupSpec spec = groupSpec(group, listed(group));
        SubscribedTopicDescriber describer = describer(group);
        long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        int size = -1;
        try {
            size = assignor.assign(spec, describer).members().size();
        } catch (RuntimeException refusal) {
            // -1 is told.
        }
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        return JSON.createObjectNode().put("cpuNs", end - begin).put("size", size);
    }

    private static ConsumerGroupPartitionAssignor assignor(String name) {
        return name.equals("uniform") ? new UniformAssignor() : new RangeAssignor();
    }

    /** The topics that are there or named, in one order whatever the case's, as their names are sorted in a broker. */
    private static Group group(JsonNode step) {
        Map<String, Integer> counts = new TreeMap<>();
        for (JsonNode member : step.get("members")) {
            member.get("topics").forEach(topic -> counts.put(topic.asText(), ABSENT));
            member.get("assignment").forEach(held -> counts.put(held.get(0).asText(), ABSENT));
        }
        step.get("topics").forEach(topic -> counts.put(topic.get("id").asText(), topic.get("partitions").asInt()));
        Group group = new Group();
        counts.forEach((topic, count) -> {
            group.topics.add(topic);
            group.counts.add(count);
        });
        Map<String, Integer> places = new HashMap<>();
        group.topics.forEach(topic -> places.put(topic, places.size()));
        step.get("members").forEach(member -> group.members.add(member(member, places)));
        return group;
    }

    private static Member member(JsonNode given, Map<String, Integer> places) {
        Member member = new Member();
        member.id = given.get("id").asText();
        member.instance = given.hasNonNull("instance_id") ? given.get("instance_id").asText() : null;
        List<Integer> topics = new ArrayList<>();
        given.get("topics").forEach(topic -> topics.add(places.get(topic.asText())));
        member.topics = ints(topics);
        List<Integer> owned = new ArrayList<>();
        for (JsonNode held : given.get("assignment")) {
            for (JsonNode number : held.get(1)) {
                owned.add(places.get(held.get(0).asText()));
                owned.add(number.asInt());
            }
        }
        member.owned = ints(owned);
        return member;
    }

    private static int[] ints(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Uuid> ids(Group group) {
        return group.topics.stream().map(Uuid::fromString).toList();
    }

    /** What the step lists, as if each member had been given it in the order of its set of topics. */
    private static Map<String, Assignment> listed(Group group) {
        List<Uuid> ids = ids(group);
        Map<String, Assignment> targets = new HashMap<>();
        for (Member member : group.members) {
            Map<Uuid, Set<Integer>> listed = new HashMap<>();
            for (int i = 0; i < member.owned.length; i += 2) {
                listed.computeIfAbsent(ids.get(member.owned[i]), key -> new TreeSet<>()).add(member.owned[i + 1]);
            }
            Set<Uuid> order = new LinkedHashSet<>(new HashSet<>(subscribedIds(group, member, ids)));
            order.addAll(ids);
            Map<Uuid, Set<Integer>> held = order.stream().filter(listed::containsKey).collect(
                    Collectors.toMap(topic -> topic, topic -> new HashSet<>(new ArrayList<>(listed.get(topic)))));
            targets.put(member.id, new Assignment(Collections.unmodifiableMap(held)));
        }
        return targets;
    }

    private static GroupSpec groupSpec(Group group, Map<String, Assignment> targets) {
        List<Uuid> ids = ids(group);
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (Member member : group.members) {
            Set<Uuid> topics = subscribedIds(group, member, ids);
            subscriptions.add(topics);
            Assignment held = targets.getOrDefault(member.id, Assignment.EMPTY);
            held.partitions().forEach((topic, numbers) -> numbers.forEach(number ->
                    owners.computeIfAbsent(topic, key -> new HashMap<>()).put(number, member.id)));
            members.put(member.id, new MemberSubscriptionAndAssignmentImpl(
                    Optional.empty(), Optional.ofNullable(member.instance), topics, held));
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
    private static SubscribedTopicDescriber describer(Group group) {
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
