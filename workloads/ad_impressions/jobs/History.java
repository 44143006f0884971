import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.LongPredicate;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import java.util.zip.GZIPInputStream;

/**
 * Older events, which lie in files: a folder for each day, a line for each record.
 *
 * <pre>2026-11-24/3-000000000000-000000000500.json.gz     the records 0 to 499 of partition 3</pre>
 *
 * By partition they end at `ends`, and Kafka begins at `begins`. With a seam in time, `untilMs`, files count for what is
 * older, and Kafka for the rest; without one, an event counts from files if it is in one. That each record is there, and
 * once, was made sure of before this JVM began (java_job.py).
 */
record History(Path folder, List<Long> ends, List<Long> begins, Long untilMs) {
    /** As the run config of a job gives it; null where all lies in Kafka. */
    static History of(JsonNode told) {
        if (told.isNull()) {
            return null;
        }
        JsonNode untilMs = told.get("until_ms");
        return new History(
                Path.of(told.get("folder").asText()),
                numbers(told.get("ends")),
                numbers(told.get("begins")),
                untilMs.isNull() ? null : untilMs.asLong());
    }

    private static List<Long> numbers(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false).map(JsonNode::asLong).toList();
    }

    /** Where Kafka is to be read from, by partition. */
    List<Long> seam() {
        return untilMs == null ? ends : begins;
    }

    /** Whether what is read from files counts, by its time. */
    LongPredicate countsFromFiles() {
        return timeMs -> untilMs == null || timeMs < untilMs;
    }

    LongPredicate countsFromKafka() {
        return timeMs -> untilMs == null || timeMs >= untilMs;
    }

    /** What one file holds, as its name says: records of a partition, from the first to before the end. */
    record Stretch(Path path, int partition, long first, long end) {
        private static Stretch of(Path path) {
            String[] name = path.getFileName().toString().split("[-.]");
            return new Stretch(path, Integer.parseInt(name[0]), Long.parseLong(name[1]), Long.parseLong(name[2]));
        }

        List<byte[]> lines() throws IOException {
            try (InputStream plain = Files.newInputStream(path);
                    InputStream in = path.toString().endsWith(".gz") ? new GZIPInputStream(plain) : plain) {
                return History.lines(in.readAllBytes());
            }
        }
    }

    /** Those of a partition, the oldest first. */
    List<Stretch> stretches(int partition) throws IOException {
        try (Stream<Path> found = Files.walk(folder)) {
            return found.filter(Files::isRegularFile)
                    .map(Stretch::of)
                    .filter(each -> each.partition() == partition)
                    .sorted(Comparator.comparingLong(Stretch::first))
                    .toList();
        }
    }

    /** Each has an end. */
    private static List<byte[]> lines(byte[] content) {
        List<byte[]> lines = new ArrayList<>();
        int begin = 0;
        for (int at = 0; at < content.length; at++) {
            if (content[at] == '\n') {
                lines.add(Arrays.copyOfRange(content, begin, at));
                begin = at + 1;
            }
        }
        return lines;
    }
}
