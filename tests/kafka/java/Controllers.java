//@ file since 4.1
import java.util.List;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;

import org.apache.kafka.controller.ControllerHistory;

/** Whole histories of a controller: what each step returned, and the brokers and partitions after it. */
final class Controllers {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Controllers() {
    }

    /** Each step is a letter and what it is given. */
    static ArrayNode history(JsonNode input) {
        ManualTime time = new ManualTime(1_000_000);
        ControllerHistory history = new ControllerHistory(time, input.get("elr").asBoolean());
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode step : input.get("steps")) {
            String result = step(history, time, step);
            answers.add(result + "\n" + history.endStep());
        }
        return answers;
    }

    private static String step(ControllerHistory history, ManualTime time, JsonNode of) {
        return switch (of.get(0).asText()) {
            case "R" -> history.register(number(of, 1), number(of, 2), flag(of, 3));
            case "H" -> {
                time.sleep(1);
                history.fenceStale();
                yield history.heartbeat(number(of, 1), flag(of, 2), number(of, 3), flag(of, 4), flag(of, 5));
            }
            case "T" -> {
                for (int pause : numbers(of, 1)) {
                    time.sleep(pause);
                    history.fenceStale();
                }
                yield "0";
            }
            case "A" -> history.alterPartition(number(of, 1), flag(of, 2), text(of, 3), number(of, 4), numbers(of, 5),
                    numbers(of, 6), numbers(of, 7), flag(of, 8));
            case "E" -> history.elect(text(of, 1), number(of, 2), (byte) number(of, 3));
            case "M" -> history.reassign(text(of, 1), number(of, 2), List.of(JSON.convertValue(of.get(3), Integer[].class)));
            case "C" -> history.create(text(of, 1), lists(of, 2));
            case "G" -> history.grow(text(of, 1), number(of, 2), lists(of, 3));
            case "O" -> history.cordon(number(of, 1), flag(of, 2));
            case "P" -> history.place(text(of, 1), number(of, 2), number(of, 3));
            case "Q" -> history.extend(text(of, 1), number(of, 2));
            case "D" -> history.delete(text(of, 1));
            case "K" -> history.configure(text(of, 1), text(of, 2), text(of, 3));
            case "B" -> history.balanceAndSweep();
            case "Z" -> history.failOver();
            default -> throw new IllegalArgumentException("unknown step " + of);
        };
    }

    private static int number(JsonNode of, int place) {
        return of.get(place).asInt();
    }

    private static boolean flag(JsonNode of, int place) {
        return of.get(place).asBoolean();
    }

    private static String text(JsonNode of, int place) {
        return of.get(place).asText();
    }

    private static int[] numbers(JsonNode of, int place) {
        return JSON.convertValue(of.get(place), int[].class);
    }

    private static List<List<Integer>> lists(JsonNode of, int place) {
        return JSON.convertValue(of.get(place), new TypeReference<List<List<Integer>>>() { });
    }
}
