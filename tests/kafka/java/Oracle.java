import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
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

import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.controller.Reassignments;
import org.apache.kafka.tools.ClusterClient;
import org.apache.kafka.tools.DumpLogSegments;
import org.slf4j.LoggerFactory;

/**
 * Kafka's classes behind a pipe: one JSON object a line in, `call` and `input`, and one a line out: `expected`, or
 * `expected_error` with the class and message of what Kafka threw. The answer to a golden case's input is its answer.
 */
final class Oracle {
    private static final ObjectMapper JSON = JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
    private static final ClusterClient CLIENT = new ClusterClient();

    private Oracle() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        LoggerFactory.getLogger(Oracle.class);  // Complains once that nothing is bound; not into a captured stream.
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status + ": " + message);
        });
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer((ObjectNode) JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);  // Producers whose brokers are gone would wait for them.
    }

    private static ObjectNode answer(ObjectNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("expected", expected(request.get("call").asText(), (ObjectNode) request.get("input")));
        } catch (Exception | Error thrown) {
            Throwable refusal = thrown instanceof java.util.concurrent.ExecutionException ? thrown.getCause() : thrown;
            answer.putObject("expected_error")
                    .put("class", refusal.getClass().getName()).put("message", refusal.getMessage());
        }
        return answer;
    }

    private static JsonNode expected(String call, ObjectNode input) throws Exception {
        return switch (call) {
            case "versions" -> JSON.createObjectNode().put("kafka", AppInfoParser.getVersion())
                    .put("java", Runtime.version().feature()).put("machine", System.getProperty("java.vm.name"));
            case "admin_utils" -> Placers.classic(input);
            case "striped_replica_placer" -> Placers.striped(input);
            case "placer_times" -> Placers.times(input);
            case "java_random" -> Hashes.random(input);
            case "producer_key_partition" -> Hashes.keyPartition(input);
            case "group_coordinator_partition" -> Hashes.groupPartition(input);
            case "hash_orders" -> Hashes.orders(input);
            case "hash_set" -> Hashes.walked(input);
            case "consumer_range", "consumer_roundrobin", "consumer_sticky", "consumer_cooperative_sticky" ->
                ClientAssignors.steps(input);
            case "server_range", "server_uniform" -> ServerAssignors.steps(input);
            case "assignor_time" -> input.has("served") ? ServerAssignors.time(input) : ClientAssignors.time(input);
            case "batches" -> LogBatches.batches(input);
            case "bitflips" -> LogBatches.bitFlips(input);
            case "build" -> LogBatches.built(input);
            case "read" -> LogBatches.read(input);
            case "segment" -> Segments.run(input);
            case "log" -> LogProgram.run(input, Path.of(input.get("folder").asText()));
            case "close" -> GoldenLogs.close(input);
            case "open" -> GoldenLogs.open(input);
            case "write_checkpoint" -> Checkpoints.write(input);
            case "read_checkpoint" -> Checkpoints.read(input);
            case "logdir" -> LogDirs.run(input);
            case "dump" -> dump(input);
            case "metadata" -> MetadataImages.replay(input);
            //@ since 4.2
            case "timing" -> LogTimings.measure(input);
            //@ end
            case "group_settings" -> GroupConfigs.answers(input);
            case "plan" -> Reassignments.parsed(input);
            case "moves" -> Reassignments.moved(input);
            case "cluster" -> CLIENT.answer(input);
            //@ since 4.1
            case "controller" -> Controllers.history(input);
            //@ end
            //@ mirror
            case "mirror" -> org.apache.kafka.connect.mirror.Mirrors.answer(input);
            //@ end
            default -> throw new IllegalArgumentException("no call " + call);
        };
    }

    /** Run kafka-dump-log with the arguments; what it throws comes after what it printed. */
    private static ObjectNode dump(ObjectNode input) {
        String[] arguments = JSON.convertValue(input.get("arguments"), String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream errBefore = System.err;
        PrintStream outBefore = System.out;
        ObjectNode answer = JSON.createObjectNode();
        try {
            PrintStream captured = new PrintStream(out, true, StandardCharsets.UTF_8);
            System.setOut(captured);
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            scala.Console.withOut(captured, () -> {
                try {
                    DumpLogSegments.main(arguments);
                } catch (RuntimeException thrown) {
                    throw thrown;
                } catch (Exception thrown) {  // An IOException, which the Scala of older releases does not declare.
                    throw new IllegalStateException(thrown);
                }
                return null;
            });
        } catch (RuntimeException caught) {
            Throwable thrown = caught.getClass() == IllegalStateException.class && caught.getCause() != null
                ? caught.getCause() : caught;
            answer.put("thrown", thrown.getClass().getName()).put("message", thrown.getMessage());
        } finally {
            System.setOut(outBefore);
            System.setErr(errBefore);
        }
        return answer.put("out", out.toString(StandardCharsets.UTF_8)).put("err", err.toString(StandardCharsets.UTF_8));
    }
}
