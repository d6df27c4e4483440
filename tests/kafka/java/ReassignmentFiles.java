package org.apache.kafka.tools.reassign;  // For parseExecuteAssignmentArgs, which is the package's alone.

import java.util.List;
import java.util.Map;
import java.util.Map.Entry;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;

/** Files of kafka-reassign-partitions as --execute reads and checks them before it asks any broker. */
public final class ReassignmentFiles {
    private ReassignmentFiles() {
    }

    /** Return the partitions of a file with their replicas and the directories that it names. */
    public static ArrayNode parsed(String text) throws Exception {
        Entry<Map<TopicPartition, List<Integer>>, Map<TopicPartitionReplica, String>> read =
            ReassignPartitionsCommand.parseExecuteAssignmentArgs(text);
        ArrayNode rows = new ObjectMapper().createArrayNode();
        read.getKey().forEach((partition, replicas) -> {
            ObjectNode row = rows.addObject().put("topic", partition.topic()).put("partition", partition.partition());
            ArrayNode list = row.putArray("replicas");
            ArrayNode dirs = row.putArray("log_dirs");
            for (Integer broker : replicas) {
                list.add(broker);
                dirs.add(read.getValue().getOrDefault(
                    new TopicPartitionReplica(partition.topic(), partition.partition(), broker), "any"));
            }
        });
        return rows;
    }
}
