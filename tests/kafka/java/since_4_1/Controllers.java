import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.controller.ControllerHistory;

/** Answers whole histories of a controller: what each step returned, and the brokers and partitions after it. */
public final class Controllers {
    private final Wire wire;

    private Controllers(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Wire wire = new Wire(System.in, answers);
        Controllers controllers = new Controllers(wire);
        for (int elr = wire.readByteOrEnd(); elr >= 0; elr = wire.readByteOrEnd()) {
            controllers.answer(elr == 1);
            wire.flush();
        }
    }

    private void answer(boolean elr) throws IOException {
        ManualTime time = new ManualTime(1_000_000);
        ControllerHistory history = new ControllerHistory(time, elr);
        int steps = wire.readInt();
        for (int i = 0; i < steps; i++) {
            String result = step(history, time);
            wire.writeString(result + "\n" + history.endStep());
        }
    }

    private String step(ControllerHistory history, ManualTime time) throws IOException {
        int operation = wire.readByteOrEnd();
        switch (operation) {
            case 'R': return history.register(wire.readInt(), wire.readInt(), wire.readBoolean());
            case 'H':
                time.sleep(1);
                history.fenceStale();
                return history.heartbeat(wire.readInt(), wire.readBoolean(), wire.readInt(), wire.readBoolean(),
                        wire.readBoolean());
            case 'T':
                for (int pause : ints()) {
                    time.sleep(pause);
                    history.fenceStale();
                }
                return "0";
            case 'A': return history.alterPartition(wire.readInt(), wire.readBoolean(), wire.readString(), wire.readInt(),
                    ints(), ints(), ints(), wire.readBoolean());
            case 'E': return history.elect(wire.readString(), wire.readInt(), (byte) wire.readInt());
            case 'M': return history.reassign(wire.readString(), wire.readInt(), list());
            case 'C': return history.create(wire.readString(), lists());
            case 'G': return history.grow(wire.readString(), wire.readInt(), lists());
            case 'O': return history.cordon(wire.readInt(), wire.readBoolean());
            case 'P': return history.place(wire.readString(), wire.readInt(), wire.readInt());
            case 'Q': return history.extend(wire.readString(), wire.readInt());
            case 'D': return history.delete(wire.readString());
            case 'K': return history.configure(wire.readString(), wire.readString(), wire.readString());
            case 'B': return history.balanceAndSweep();
            case 'X': return history.unregister(wire.readInt());
            case 'Z': return history.failOver();
            default: throw new IllegalArgumentException("unknown operation " + operation);
        }
    }

    private int[] ints() throws IOException {
        return list().stream().mapToInt(Integer::intValue).toArray();
    }

    private List<Integer> list() throws IOException {
        int count = wire.readInt();
        List<Integer> values = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            values.add(wire.readInt());
        }
        return values;
    }

    private List<List<Integer>> lists() throws IOException {
        int count = wire.readInt();
        List<List<Integer>> values = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            values.add(list());
        }
        return values;
    }
}
