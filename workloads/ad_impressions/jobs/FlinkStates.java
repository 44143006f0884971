import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.functions.WindowReaderFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;

/**
 * What lies in the state of the Flink job, by Flink's own State Processor API, from copies of its checkpoints.
 *
 * <pre>java -cp JARS FlinkStates CONFIG.json COPIES TABLE</pre>
 *
 * COPIES holds a folder for each copy, named by its number, and in that the checkpoint, named by its own. TABLE becomes a
 * file of JSON: a line for each cell, with the number of its copy.
 */
public final class FlinkStates {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        System.setProperty("java.io.tmpdir", System.getenv().getOrDefault("TMPDIR", "/tmp"));
        JsonNode config = JSON.readTree(new File(arguments[0]));
        try (BufferedWriter table = Files.newBufferedWriter(Path.of(arguments[2]));
                Stream<Path> copies = Files.find(Path.of(arguments[1]), 2, (path, what) -> Files.exists(
                        path.resolve("_metadata")))) {
            for (Path copy : copies.sorted().toList()) {
                int number = Integer.parseInt(copy.getParent().getFileName().toString());
                try (CloseableIterator<FlinkRecords.Total> cells = cells(copy, config).executeAndCollect()) {
                    while (cells.hasNext()) {
                        table.write(line(number, cells.next()));
                        table.newLine();
                    }
                }
            }
        }
        System.exit(0);
    }

    private static DataStream<FlinkRecords.Total> cells(Path copy, JsonNode config) throws Exception {
        Configuration settings = new Configuration();
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        Duration length = Duration.ofMillis(config.get("window_ms").asLong());
        return SavepointReader.read(flink, copy.toUri().toString(), new HashMapStateBackend())
                .window(TumblingEventTimeWindows.of(length))
                .aggregate(
                        FlinkJob.COUNTS,
                        new FlinkJob.Count(),
                        new ToTotal(),
                        Types.STRING,
                        Types.LONG,
                        FlinkRecords.Total.TYPE);
    }

    private static String line(int number, FlinkRecords.Total cell) throws Exception {
        return JSON.writeValueAsString(Map.of(
                "number", number,
                "key", cell.key(),
                "field", Long.toString(cell.windowMs()),
                "value", Long.toString(cell.total())));
    }

    private static final class ToTotal extends WindowReaderFunction<Long, FlinkRecords.Total, String, TimeWindow> {
        @Override
        public void readWindow(
                String key, Context<TimeWindow> context, Iterable<Long> counts, Collector<FlinkRecords.Total> out) {
            counts.forEach(count -> out.collect(new FlinkRecords.Total(key, context.window().getStart(), count)));
        }
    }
}
