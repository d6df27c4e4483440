import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/** Golden cases of the group coordinator's assignors; topics are named by their ids. */
final class GoldenServers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int ABSENT = -1;

    private GoldenServers() {
    }

    static ObjectNode steps(JsonNode input) {
        ObjectNode expected = JSON.createObjectNode();
        ArrayNode steps = expected.putArray("steps");
        for (JsonNode step : input.get("steps")) {
            Assignors.Group group = group(step);
            Map<String, MemberAssignment> answer = Assignors.serverAssignor(input.get("assignor").asText())
                    .assign(Assignors.groupSpec(group), Assignors.describer(group)).members();
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

    /** The topics that are there or named, in one order whatever the case's, as their names are sorted in a broker. */
    private static Assignors.Group group(JsonNode step) {
        Map<String, Integer> counts = new TreeMap<>();
        for (JsonNode member : step.get("members")) {
            member.get("topics").forEach(topic -> counts.put(topic.asText(), ABSENT));
            member.get("assignment").forEach(held -> counts.put(held.get(0).asText(), ABSENT));
        }
        step.get("topics").forEach(topic -> counts.put(topic.get("id").asText(), topic.get("partitions").asInt()));
        Assignors.Group group = new Assignors.Group();
        counts.forEach((topic, count) -> {
            group.topics.add(topic);
            group.counts.add(count);
        });
        step.get("members").forEach(member -> group.members.add(member(member, group.topics)));
        return group;
    }

    private static Assignors.Member member(JsonNode given, List<String> all) {
        Assignors.Member member = new Assignors.Member();
        member.id = given.get("id").asText();
        member.instance = given.hasNonNull("instance_id") ? given.get("instance_id").asText() : null;
        List<Integer> topics = new ArrayList<>();
        given.get("topics").forEach(topic -> topics.add(all.indexOf(topic.asText())));
        member.topics = ints(topics);
        List<Integer> owned = new ArrayList<>();
        for (JsonNode held : given.get("assignment")) {
            for (JsonNode number : held.get(1)) {
                owned.add(all.indexOf(held.get(0).asText()));
                owned.add(number.asInt());
            }
        }
        member.owned = ints(owned);
        return member;
    }

    private static int[] ints(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).toArray();
    }
}
