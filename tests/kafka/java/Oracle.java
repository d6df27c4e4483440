import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;

import org.apache.kafka.metadata.placement.ClusterDescriber;

/** Answers one request after another on standard input and output, until the input ends. */
public final class Oracle {
    private final Wire wire;
    private final Baseline baseline = new Baseline();

    private Oracle(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        new Oracle(new Wire(System.in, answers)).run();
    }

    private void run() throws Exception {
        int operation = wire.readByteOrEnd();
        while (operation >= 0) {
            answer(operation);
            wire.flush();
            operation = wire.readByteOrEnd();
        }
    }

    private void answer(int operation) throws Exception {
        switch (operation) {
            case 'V': versions(); break;
            case 'C': classic(); break;
            case 'A': wire.writeInts(Classic.rackAlternated(readBrokers())); break;
            case 'S': striped(); break;
            case 'R': random(); break;
            case 'M': mapOrder(); break;
            case 'H': setCopyOrder(); break;
            case 'B': baseline(); break;
            default: throw new IllegalArgumentException("unknown operation " + operation);
        }
    }

    private void versions() throws IOException {
        Properties release = new Properties();
        try (InputStream stated = Oracle.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            release.load(stated);
        }
        wire.writeString(release.getProperty("version"));
        wire.writeString(System.getProperty("java.version"));
        wire.writeString(System.getProperty("java.vm.name"));
    }

    private List<Placers.Broker> readBrokers() throws IOException {
        int count = wire.readInt();
        List<Placers.Broker> brokers = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            brokers.add(new Placers.Broker(wire.readInt(), wire.readString(), wire.readBoolean()));
        }
        return brokers;
    }

    /** One call after seeding; then the generator's next number, which shows how often it was drawn from. */
    private void classic() throws Exception {
        Random generator = Classic.generator();
        generator.setSeed(wire.readLong());
        List<Placers.Broker> brokers = readBrokers();
        int partitions = wire.readInt();
        int factor = wire.readInt();
        int fixedStartIndex = wire.readInt();
        int startPartition = wire.readInt();
        try {
            Map<Integer, List<Integer>> placed =
                    Classic.rows(brokers, partitions, factor, fixedStartIndex, startPartition);
            wire.writeSuccess();
            wire.writeRows(new ArrayList<>(placed.values()));
        } catch (RuntimeException error) {
            wire.writeError(error);
        }
        wire.writeInt(generator.nextInt());
    }

    /** Several calls on one generator; each answers rows or an error. Then the generator's next number. */
    private void striped() throws IOException {
        Random random = new Random(wire.readLong());
        ClusterDescriber cluster = Placers.describer(readBrokers());
        int calls = wire.readInt();
        for (int i = 0; i < calls; i++) {
            int start = wire.readInt();
            int partitions = wire.readInt();
            int factor = wire.readInt();
            try {
                List<List<Integer>> rows =
                        Placers.rows(Placers.striped(random, cluster, start, partitions, factor));
                wire.writeSuccess();
                wire.writeRows(rows);
            } catch (RuntimeException error) {
                wire.writeError(error);
            }
        }
        wire.writeInt(random.nextInt());
    }

    /** Draws: 'n' is nextInt(), 'b' nextInt(bound), 's' the order of 0..n-1 after a shuffle. */
    private void random() throws IOException {
        Random random = new Random(wire.readLong());
        int draws = wire.readInt();
        for (int i = 0; i < draws; i++) {
            int kind = wire.readByteOrEnd();
            int argument = wire.readInt();
            List<Integer> drawn = new ArrayList<>();
            if (kind == 'n') {
                drawn.add(random.nextInt());
            } else if (kind == 'b') {
                drawn.add(random.nextInt(argument));
            } else {
                for (int item = 0; item < argument; item++) {
                    drawn.add(item);
                }
                Collections.shuffle(drawn, random);
            }
            wire.writeInts(drawn);
        }
    }

    /** The order in which a HashMap, filled key by key, gives its keys: places in the list sent. */
    private void mapOrder() throws IOException {
        List<String> keys = wire.readStrings();
        Map<String, Integer> places = new HashMap<>();
        for (String key : keys) {
            places.putIfAbsent(key, places.size());
        }
        wire.writeInts(new ArrayList<>(places.values()));
    }

    /** The order of a HashSet made at once from a HashMap's keys, as a copy is. */
    private void setCopyOrder() throws IOException {
        List<String> keys = wire.readStrings();
        Map<String, Integer> places = new HashMap<>();
        for (String key : keys) {
            places.putIfAbsent(key, places.size());
        }
        Collection<String> copied = new HashSet<>(keys);
        List<Integer> order = new ArrayList<>(copied.size());
        for (String key : copied) {
            order.add(places.get(key));
        }
        wire.writeInts(order);
    }

    /** One call of a placer, the CPU nanoseconds of its thread, and a running sum over the results. */
    private void baseline() throws IOException {
        int placer = wire.readByteOrEnd();
        List<Placers.Broker> brokers = readBrokers();
        int partitions = wire.readInt();
        int factor = wire.readInt();
        wire.writeLong(placer == 'C'
                ? baseline.classicNanos(brokers, partitions, factor)
                : baseline.stripedNanos(brokers, partitions, factor));
        wire.writeLong(baseline.checksum());
    }
}
