import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.util.Map;

/** The Flink job with a mistake where files end and Kafka begins. */
public final class Seams {
    public static void main(String[] arguments) throws IOException {
        JsonNode orders = new ObjectMapper().readTree(new File(arguments[0]));
        long shift = orders.get("options").get("streamgauge.shift").asLong();
        Map<Integer, Long> begins = FlinkJob.seam(orders);
        begins.replaceAll((partition, offset) -> offset + shift);
        FlinkJob.start(orders, begins);
    }
}
