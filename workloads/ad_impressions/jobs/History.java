import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.LongPredicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import java.util.zip.GZIPInputStream;

/**
 * Older events, which lie in files: a folder for each day, a line for each record.
 *
 * <pre>2026-11-24/3-000000000000-000000000500.json.gz     the records 0 to 499 of partition 3</pre>
 *
 * By partition they end at `ends`, and Kafka begins at `begins`. With a seam in time, `untilMs`, files count for what is
 * older, and Kafka for the rest; without one, an event counts from files if it is in one.
 */
record History(Path folder, List<Long> ends, List<Long> begins, Long untilMs) {
    private static final int FEWEST_LINES = 10; // of which none is an event, before a file holds something else
    private static final ObjectMapper JSON = new ObjectMapper();

    /** As the orders of a job tell it; null where all lies in Kafka. */
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

    /** What one file has to hold, by its name: records of a partition, from the first to before the end. */
    record Stretch(Path path, int partition, long first, long end) {
        private static final Pattern NAME = Pattern.compile("(\\d+)-(\\d+)-(\\d+)\\.json(\\.gz)?");

        /** Null: it is no such file. */
        static Stretch of(Path path) {
            Matcher name = NAME.matcher(path.getFileName().toString());
            return !name.matches()
                    ? null
                    : new Stretch(
                            path, Integer.parseInt(name.group(1)), Long.parseLong(name.group(2)), Long.parseLong(name.group(3)));
        }

        String name() {
            return path.getFileName().toString();
        }

        List<byte[]> lines() throws IOException {
            return History.lines(content());
        }

        private byte[] content() throws IOException {
            try (InputStream plain = Files.newInputStream(path);
                    InputStream in = name().endsWith(".gz") ? new GZIPInputStream(plain) : plain) {
                return in.readAllBytes();
            }
        }
    }

    /** Those of a partition, the oldest first. */
    List<Stretch> stretches(int partition) throws IOException {
        return paths().stream()
                .map(Stretch::of)
                .filter(each -> each != null && each.partition() == partition)
                .sorted(Comparator.comparingLong(Stretch::first).thenComparingLong(Stretch::end))
                .toList();
    }

    private List<Path> paths() throws IOException {
        try (Stream<Path> found = Files.walk(folder)) {
            return found.filter(Files::isRegularFile).sorted().toList();
        }
    }

    /** In words, why the files do not hold each record below their ends once. `fields`: an event has all of them. */
    List<String> wrong(List<String> fields) throws IOException {
        List<String> wrong = new ArrayList<>();
        for (int partition = 0; partition < ends.size(); partition++) {
            addGaps(partition, wrong);
        }
        for (Path path : paths()) {
            Stretch stretch = Stretch.of(path);
            String why = stretch == null ? "is not named PARTITION-FIRST-END.json" : wrongIn(stretch, fields);
            if (!why.isEmpty()) {
                wrong.add(path.getFileName() + " " + why);
            }
        }
        return wrong;
    }

    /** What lies between two files, or in both. */
    private void addGaps(int partition, List<String> wrong) throws IOException {
        long done = 0;
        long end = ends.get(partition);
        String before = "";
        for (Stretch each : stretches(partition)) {
            if (done < each.first()) {
                wrong.add(text("records %,d to %,d of partition %d lie in no file", done, each.first() - 1, partition));
            } else if (done > each.first()) {
                long last = Math.min(done, each.end()) - 1;
                String both = before + " and " + each.name();
                wrong.add(text("records %,d to %,d of partition %d lie in %s", each.first(), last, partition, both));
            }
            done = each.end();
            before = each.name();
        }
        if (done < end) {
            wrong.add(text("records %,d to %,d of partition %d lie in no file", done, end - 1, partition));
        } else if (done > end) {
            String where = text("record %,d, where the files of partition %d end", end - 1, partition);
            wrong.add(before + " goes on behind " + where);
        }
    }

    private static String wrongIn(Stretch stretch, List<String> fields) {
        long wanted = stretch.end() - stretch.first();
        byte[] content;
        try {
            content = stretch.content();
        } catch (IOException error) {
            return "is torn: " + error.getMessage();
        }
        List<byte[]> lines = lines(content);
        if (content.length == 0) {
            return text("is empty, and should hold %,d records", wanted);
        }
        if (content[content.length - 1] != '\n') {
            return text("is torn: its last line, %,d of %,d, has no end", lines.size() + 1, wanted);
        }
        if (lines.size() != wanted) {
            return text("holds %,d records, and should hold %,d", lines.size(), wanted);
        }
        if (lines.size() < FEWEST_LINES || lines.stream().anyMatch(line -> has(line, fields))) {
            return "";
        }
        return "holds no event: no line has all of " + String.join(", ", fields);
    }

    /** Those that have an end. */
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

    private static boolean has(byte[] line, List<String> fields) {
        try {
            JsonNode event = JSON.readTree(line);
            return event.isObject() && fields.stream().allMatch(event::has);
        } catch (IOException noJson) {
            return false;
        }
    }

    private static String text(String words, Object... values) {
        return String.format(Locale.ROOT, words, values);
    }
}
