import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.util.Map;

/** The Flink job with a mistake where files end and Kafka begins. */
public final class Seams {
    public static void main(String[] arguments) throws IOException {
        JsonNode config = new ObjectMapper().readTree(new File(arguments[0]));
        long shift = config.get("options").get("streamgauge.shift").asLong();
        Map<Integer, Long> begins = FlinkJob.seam(config);
        begins.replaceAll((partition, offset) -> offset + shift);
        FlinkJob.start(config, begins);
    }
}
