package org.apache.kafka.controller;  // For PartitionReassignmentReplicas, which is the package's alone.

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.tools.reassign.ReassignmentFiles;

/** How Kafka reads a file of reassignments, starts a move, and completes it. */
public final class Reassignments {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Reassignments() {
    }

    /** The partitions that kafka-reassign-partitions --execute reads of a file. */
    public static JsonNode parsed(JsonNode input) throws Exception {
        return ReassignmentFiles.parsed(input.get("text").asText());
    }

    /** What becomes of each move. */
    public static JsonNode moved(JsonNode input) throws Exception {
        ArrayNode rows = JSON.createArrayNode();
        for (JsonNode each : input.get("rows")) {
            rows.add(row(each));
        }
        return rows;
    }

    /** Start the move of one partition, and complete it with the ISR that is given. */
    private static ObjectNode row(JsonNode given) throws Exception {
        PartitionReassignmentReplicas started = new PartitionReassignmentReplicas(
            new PartitionAssignment(numbers(given.get("current")), broker -> Uuid.ZERO_UUID),
            new PartitionAssignment(numbers(given.get("target")), broker -> Uuid.ZERO_UUID));
        ObjectNode row = JSON.createObjectNode();
        put(row, "replicas", started.replicas());
        put(row, "adding", started.adding());
        put(row, "removing", started.removing());
        Optional<?> completed = started.maybeCompleteReassignment(numbers(given.get("isr")));
        if (completed.isPresent()) {
            put(row, "doneReplicas", list(completed.get(), "replicas"));
            put(row, "doneIsr", list(completed.get(), "isr"));
        }
        return row;
    }

    /** Read a field that is a record's component since 4.2, and an own one before. */
    @SuppressWarnings("unchecked")
    private static List<Integer> list(Object of, String name) throws Exception {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return (List<Integer>) field.get(of);
    }

    private static List<Integer> numbers(JsonNode list) {
        List<Integer> numbers = new ArrayList<>();
        list.forEach(each -> numbers.add(each.asInt()));
        return numbers;
    }

    private static void put(ObjectNode row, String name, List<Integer> numbers) {
        ArrayNode list = row.putArray(name);
        numbers.forEach(list::add);
    }
}
