import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.ArrayList;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.TopicAssignment;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Calls of Kafka's own striped placer, in the values of this program. */
final class Placers {
    /** One broker as the tests describe it. */
    static final class Broker {
        final int id;
        final String rack;
        final boolean fenced;

        Broker(int id, String rack, boolean fenced) {
            this.id = id;
            this.rack = rack;
            this.fenced = fenced;
        }
    }

    private Placers() {
    }

    static ClusterDescriber describer(List<Broker> brokers) {
        List<UsableBroker> usable = new ArrayList<>(brokers.size());
        for (Broker broker : brokers) {
            usable.add(new UsableBroker(broker.id, Optional.ofNullable(broker.rack), broker.fenced));
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

    static TopicAssignment striped(Random random, ClusterDescriber cluster, int start, int partitions, int factor) {
        return new StripedReplicaPlacer(random).place(new PlacementSpec(start, partitions, (short) factor), cluster);
    }

    static List<List<Integer>> rows(TopicAssignment topic) {
        List<List<Integer>> rows = new ArrayList<>(topic.assignments().size());
        for (PartitionAssignment partition : topic.assignments()) {
            rows.add(partition.replicas());
        }
        return rows;
    }
}
