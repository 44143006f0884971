import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/** The job of Kafka Streams with a mistake where files end and Kafka begins. */
final class Seams extends KafkaStreamsJob {
    private final History whole;
    private final String bug;

    public static void main(String[] arguments) throws Exception {
        new Seams(readConfig(arguments)).run();
    }

    private Seams(JsonNode config) throws IOException {
        super(config);
        whole = History.of(config.get("history"));
        bug = config.get("options").get("streamgauge.bug").asText();
    }

    @Override
    History history() throws IOException {
        return bug.equals("stale") ? withoutItsLastBatch() : whole;
    }

    @Override
    List<Long> seam(History history) {
        return switch (bug) {
            case "early" -> moved(-1);
            case "late" -> moved(1);
            case "earliest" -> whole.begins();
            case "dies" -> onTheSecondStart(whole.ends());
            default -> whole.ends();
        };
    }

    private List<Long> moved(long records) {
        return whole.ends().stream().map(end -> end + records).toList();
    }

    /** The first one dies: all files are counted, and nobody knows where Kafka goes on. */
    private List<Long> onTheSecondStart(List<Long> ends) {
        if (whole.folder().resolveSibling("died").toFile().mkdir()) {
            Runtime.getRuntime().halt(1);
        }
        return ends;
    }

    /** The last file of each partition is gone, and nobody looks for it. */
    private History withoutItsLastBatch() throws IOException {
        List<Long> ends = new ArrayList<>();
        for (int partition = 0; partition < whole.ends().size(); partition++) {
            List<History.Stretch> stretches = whole.stretches(partition);
            History.Stretch last = stretches.get(stretches.size() - 1);
            Files.delete(last.path());
            ends.add(last.first());
        }
        return new History(whole.folder(), ends, whole.begins(), null);
    }
}
