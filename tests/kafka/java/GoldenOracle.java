import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Prints golden cases: one JSON object a line in, which is a case without answers, one a line out, the case with what
 * Kafka's classes answered. An exception of Kafka's is an answer, `expected_error`, with its class and message.
 */
final class GoldenOracle {
    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    private GoldenOracle() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        String line = requests.readLine();
        while (line != null) {
            answers.println(JSON.writeValueAsString(answer((ObjectNode) JSON.readTree(line))));
            line = requests.readLine();
        }
    }

    private static ObjectNode answer(ObjectNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("expected", expected(request));
        } catch (Exception | Error refusal) {
            String message = refusal.getMessage();
            answer.putObject("expected_error").put("class", refusal.getClass().getName()).put("message", message);
        }
        return answer;
    }

    private static JsonNode expected(ObjectNode request) throws Exception {
        JsonNode input = request.get("input");
        String what = request.get("what").asText();
        switch (what) {
            case "versions":
                return JSON.createObjectNode().put("kafka", AppInfoParser.getVersion())
                        .put("java", Runtime.version().feature());
            case "admin_utils": return GoldenPlacers.classic(input);
            case "striped_replica_placer": return GoldenPlacers.striped(input);
            case "java_random": return GoldenPlacers.random(input);
            case "producer_key_partition": return GoldenPlacers.keyPartition(input);
            case "group_coordinator_partition": return GoldenPlacers.groupPartition(input);
            case "consumer_range":
            case "consumer_roundrobin":
            case "consumer_sticky":
            case "consumer_cooperative_sticky": return GoldenConsumers.steps(input);
            case "server_range":
            case "server_uniform": return GoldenServers.steps(input);
            case "batches": return GoldenBatches.batches(input);
            case "bitflips": return GoldenBatches.bitFlips(input);
            case "segment": return GoldenSegments.run(input);
            case "log":
                LogProgram.run((ObjectNode) input, Path.of(input.get("folder").asText()));
                return input;
            case "close": return GoldenLogs.close(input);
            case "open": return GoldenLogs.open(input);
            case "write": return GoldenFiles.write(input);
            case "read": return GoldenFiles.read(input);
            case "logdir": return GoldenLogDir.run(input);
            default: throw new IllegalArgumentException("no golden cases of " + what);
        }
    }
}
