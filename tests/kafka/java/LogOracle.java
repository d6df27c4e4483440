import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.tools.DumpLogSegments;
import org.slf4j.LoggerFactory;

/**
 * Kafka's log classes behind a pipe: one JSON object a line in, one a line out, until the end of the input.
 * A call that Kafka answers with an exception is answered with its class and message.
 */
final class LogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private LogOracle() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        LoggerFactory.getLogger(LogOracle.class);  // Complains once that nothing is bound; not into a captured stream.
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status + ": " + message);
        });
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = requests.readLine();
        while (line != null) {
            answers.println(JSON.writeValueAsString(answer((ObjectNode) JSON.readTree(line))));
            line = requests.readLine();
        }
    }

    private static JsonNode answer(ObjectNode request) {
        try {
            return switch (request.get("call").asText()) {
                case "version" -> JSON.createObjectNode().put("version", AppInfoParser.getVersion());
                case "dump" -> dump(request);
                case "open" -> open(request);
                case "program" -> program(request);
                case "build" -> LogReads.build(request);
                case "read" -> LogReads.read(request);
                case "metadata" -> MetadataImages.replay(request);
                case "timing" -> LogTimings.measure(request);
                default -> throw new IllegalArgumentException("no call " + request.get("call"));
            };
        } catch (Exception | Error refusal) {
            ObjectNode node = JSON.createObjectNode();
            return node.put("exception", refusal.getClass().getName()).put("message", refusal.getMessage());
        }
    }

    /** Run kafka-dump-log with the arguments; what it throws comes after what it printed. */
    private static ObjectNode dump(ObjectNode request) {
        String[] arguments = JSON.convertValue(request.get("arguments"), String[].class);
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

    /** Open a partition's directory as a broker does, tell the log's state, and close it again if asked. */
    private static ObjectNode open(ObjectNode request) throws IOException {
        ManualTime time = new ManualTime(request.get("nowMs").asLong());
        UnifiedLog log = Logs.open(new File(request.get("directory").asText()),
                LogProgram.config(request.get("config")), time, request.get("clean").asBoolean(),
                request.get("recoveryPoint").asLong(), request.get("logStart").asLong(), Optional.empty());
        ObjectNode state = LogFiles.state(log);
        log.close();
        return state;
    }

    private static ObjectNode program(ObjectNode request) throws Exception {
        ObjectNode asked = (ObjectNode) request.get("case");
        LogProgram.run(asked, Path.of(request.get("folder").asText()));
        return asked;
    }
}
