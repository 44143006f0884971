import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.LongPredicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import redis.clients.jedis.Jedis;

/**
 * The Kafka Streams job: ad impressions from Kafka, counted per campaign and window, into Redis.
 *
 * <pre>java -cp JARS KafkaStreamsJob CONFIG.json</pre>
 *
 * Exactly once as Kafka Streams means it: offsets, state and what it sends between its two halves are one transaction.
 * Redis is outside of it. So totals are written, and only where they are higher than what is there: after a crash the
 * state goes back to its last commit and counts up again, which nobody who reads the results shall see.
 *
 * Older events in files become a topic of its own. The same topology counts that one to its end, under the same
 * application id, and so makes the state with which it then goes on in the run's topic. Kafka holds all that goes over:
 * the state in its changelog, and where to go on in the offsets of the group, which are set when the files are done. So
 * whoever finds offsets of the run's topic there knows that it was handed over, wherever an earlier start was killed.
 */
public class KafkaStreamsJob {
    /** The harness deletes topics that have the run's topic and a dot in their names, when they are not its own. */
    private static final String OWN_TOPICS = ".streams";

    private static final String OF_HISTORY = "-history";

    private static final String BY_CAMPAIGN = "by-campaign";
    private static final Duration CLOSED_WITHIN = Duration.ofSeconds(20);
    private static final String OWN_OPTION = "streamgauge."; // meant for this job: Kafka Streams never sees it
    private static final String DROPPED_TOTAL = "dropped-records-total";

    /** The option by which each event that is dropped as late is named, and its only value. */
    private static final String LATE = OWN_OPTION + "late";

    private static final String NAMED = "named";
    private static final byte[] NOTHING = new byte[0];
    private static final ObjectMapper JSON = new ObjectMapper();

    private final JsonNode config;
    private final String topic;
    private final String application;
    private final Map<String, String> settings;
    private final Path progressPath;
    private final AdViews adViews;
    private final Late late;
    private final HighestTotals totals;
    private final Admin admin;
    private volatile KafkaStreams streams;

    public static void main(String[] arguments) throws Exception {
        new KafkaStreamsJob(readConfig(arguments)).run();
    }

    static JsonNode readConfig(String[] arguments) throws IOException {
        // Native libraries are unpacked there, and a killed JVM can't remove them: they go with the run's own folder.
        System.setProperty("java.io.tmpdir", System.getenv().getOrDefault("TMPDIR", "/tmp"));
        return JSON.readTree(new File(arguments[0]));
    }

    KafkaStreamsJob(JsonNode config) throws IOException {
        this.config = config;
        topic = config.get("topic").asText();
        application = topic + OWN_TOPICS;
        settings = settings(config, application);
        progressPath = Path.of(config.get("progress_path").asText());
        late = isNamed(config) ? new Late(progressPath.resolveSibling("late.jsonl")) : null;
        Jedis redis = HighestTotals.connect(config.get("redis").asText());
        String prefix = config.get("redis_prefix").asText();
        totals = new HighestTotals(redis, prefix);
        adViews = new AdViews(texts(config.get("options")), AdViews.readAds(redis, prefix));
        admin = Admin.create(connection(config));
    }

    void run() throws Exception {
        tell(settings, progressPath.resolveSibling("engine_settings.json"));
        Progress progress = new Progress(config.get("partitions").asInt(), application, admin, progressPath);
        progress.setDaemon(true);
        progress.start();
        Runtime.getRuntime().addShutdownHook(new Thread(this::stop));
        History history = history();
        if (history != null && !isHandedOver()) {
            countFiles(history, progress);
            handOver(seam(history));
        }
        start(new Part(topic, history == null ? timeMs -> true : history.countsFromKafka(), null), progress);
    }

    /** What of the input lies in files; null for nothing. */
    History history() throws IOException {
        return History.of(config.get("history"));
    }

    /** With which record of each partition Kafka goes on behind the files. */
    List<Long> seam(History history) {
        return history.seam();
    }

    private void countFiles(History history, Progress progress) throws Exception {
        String name = application + OF_HISTORY;
        new HistoryTopic(name, history, admin).load(connection(config));
        start(new Part(name, history.countsFromFiles(), history), progress);
        progress.awaitEnd();
        // A member that may come back at once keeps its place, and nobody may set the offsets of a group that has members.
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                .withTimeout(CLOSED_WITHIN));
    }

    private boolean isHandedOver() throws ExecutionException, InterruptedException {
        return admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get().keySet().stream()
                .anyMatch(place -> place.topic().equals(topic));
    }

    /** All partitions in one step. */
    private void handOver(List<Long> seam) throws ExecutionException, InterruptedException {
        Map<TopicPartition, OffsetAndMetadata> offsets = IntStream.range(0, seam.size())
                .boxed()
                .collect(Collectors.toMap(
                        partition -> new TopicPartition(topic, partition),
                        partition -> new OffsetAndMetadata(seam.get(partition))));
        admin.alterConsumerGroupOffsets(application, offsets).all().get();
    }

    /** A part of the input. `history`: of the one that comes from files, which has an end; null for Kafka. */
    private record Part(String topic, LongPredicate counts, History history) {}

    private void start(Part part, Progress progress) {
        Map<Integer, Long> begun = new ConcurrentHashMap<>();
        Topology topology = topology(part.topic(), () -> new Views(adViews, begun, part.counts(), late != null));
        Properties properties = new Properties();
        properties.putAll(connection(config));
        properties.putAll(settings);
        streams = new KafkaStreams(topology, properties);
        streams.setUncaughtExceptionHandler(KafkaStreamsJob::end);
        progress.follow(part, application + "-" + between(topology), streams, begun);
        streams.start();
    }

    private void stop() {
        if (streams != null) {
            streams.close(CLOSED_WITHIN);
        }
    }

    private static Map<String, Object> connection(JsonNode config) {
        Map<String, Object> settings = new HashMap<>(texts(config.get("kafka").get("java")));
        settings.put("bootstrap.servers", config.get("kafka").get("bootstrap").asText());
        return settings;
    }

    /** All that is not Kafka Streams' default; what `--conf` says wins. */
    private static Map<String, String> settings(JsonNode config, String application) {
        Map<String, String> settings = new TreeMap<>();
        settings.put("application.id", application);
        settings.put("state.dir", config.get("checkpoint").asText());
        settings.put("processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2);
        // Started again it is the same member, and need not wait until the group misses the one that was killed.
        settings.put("main.consumer.group.instance.id", application);
        // Its own topics carry event times: a broker would refuse what is dated more than an hour ahead.
        settings.put("topic.message.timestamp.after.max.ms", Long.toString(Long.MAX_VALUE));
        settings.putAll(texts(config.get("options")));
        settings.keySet().removeIf(key -> key.startsWith(OWN_OPTION));
        return settings;
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        object.properties().forEach(field -> found.put(field.getKey(), field.getValue().asText()));
        return found;
    }

    private static boolean isNamed(JsonNode config) {
        String asked = texts(config.get("options")).getOrDefault(LATE, "");
        if (!asked.isEmpty() && !asked.equals(NAMED)) {
            System.err.println(LATE + " is '" + asked + "'; the only value is '" + NAMED + "'.");
            System.exit(1);
        }
        return asked.equals(NAMED);
    }

    /**
     * The same for each topic from which it reads: its own topics and stores keep their names, and its halves their
     * numbers, which the state goes by. So what a part of the input counts is decided in `views`, and not by a step more.
     */
    private Topology topology(String from, Supplier<Views> views) {
        Duration length = Duration.ofMillis(config.get("window_ms").asLong());
        Duration grace = Duration.ofMillis(config.get("watermark_ms").asLong());
        // Without names of ours Kafka Streams numbers its topics and its stores by the operators that come before them.
        boolean named = !"false".equals(texts(config.get("options")).get(OWN_OPTION + "names"));
        Grouped<String, byte[]> grouped = Grouped.with(Serdes.String(), Serdes.ByteArray());
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, byte[]> counted = builder.stream(from, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .process(views::get);
        if (late != null) {
            Repartitioned<String, byte[]> half = Repartitioned.with(Serdes.String(), Serdes.ByteArray());
            counted = counted.repartition(named ? half.withName(BY_CAMPAIGN) : half)
                    .processValues(() -> new Witness(late));
        }
        counted.groupByKey(named ? grouped.withName(BY_CAMPAIGN) : grouped)
                .windowedBy(TimeWindows.ofSizeAndGrace(length, grace))
                .count(named ? Materialized.as("counts") : Materialized.with(Serdes.String(), Serdes.Long()))
                .toStream()
                // Just before each commit the cache hands over what has changed since the last one.
                .foreach((cell, total) ->
                        totals.write(Map.of(cell.key(), Map.of(cell.window().start(), total))));
        return builder.build();
    }

    /** The topic between its two halves, as it is called behind the application's id. */
    private static String between(Topology topology) {
        return topology.describe().subtopologies().stream()
                .flatMap(half -> half.nodes().stream())
                .filter(node -> node instanceof TopologyDescription.Sink)
                .map(node -> ((TopologyDescription.Sink) node).topic())
                .findFirst()
                .orElseThrow();
    }

    /** An error ends the process at once, like a kill: whatever was not committed is done again by the next start. */
    private static StreamThreadExceptionResponse end(Throwable error) {
        error.printStackTrace();
        Runtime.getRuntime().halt(1);
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    }

    private static double number(Metric metric) {
        return ((Number) metric.metricValue()).doubleValue();
    }

    private static void tell(Map<String, String> settings, Path path) throws IOException {
        Path part = path.resolveSibling(".engine_settings.json.part");
        Files.write(part, JSON.writeValueAsBytes(settings));
        Files.move(part, path, StandardCopyOption.ATOMIC_MOVE);
    }

    /**
     * Records to views, with the event's own time and its campaign as the key. What is no view ends here.
     *
     * `begun` learns the offset of the first record of each partition: with that this start begins. `counts`: whether a
     * view is of this part of the input, by its time. `placed`: each one carries its place in the run's topic.
     */
    private static final class Views extends ContextualProcessor<byte[], byte[], String, byte[]> {
        private final AdViews views;
        private final Map<Integer, Long> begun;
        private final LongPredicate counts;
        private final boolean placed;
        private boolean isUnderWay;

        Views(AdViews views, Map<Integer, Long> begun, LongPredicate counts, boolean placed) {
            this.views = views;
            this.begun = begun;
            this.counts = counts;
            this.placed = placed;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            if (!isUnderWay) {
                context().recordMetadata().ifPresent(at -> begun.putIfAbsent(at.partition(), at.offset()));
                isUnderWay = true;
            }
            AdViews.View view = views.view(record.value());
            if (view != null && counts.test(view.timeMs())) {
                context().forward(new Record<>(view.key(), placed ? place() : NOTHING, view.timeMs()));
            }
        }

        private byte[] place() {
            RecordMetadata at = context().recordMetadata().orElseThrow();
            return ("[" + at.partition() + "," + at.offset() + "]").getBytes(StandardCharsets.UTF_8);
        }
    }

    /**
     * Sees each view on its way into its window, and whether Kafka Streams drops it there: what is handed on is worked on
     * at once, and the task counts what it drops.
     */
    private static final class Witness extends ContextualFixedKeyProcessor<String, byte[], byte[]> {
        private final Late late;
        private Metric dropped;

        Witness(Late late) {
            this.late = late;
        }

        @Override
        public void process(FixedKeyRecord<String, byte[]> record) {
            if (dropped == null) {
                dropped = droppedByTask();
            }
            double before = number(dropped);
            context().forward(record);
            if (number(dropped) > before) {
                late.name(record.value());
            }
        }

        private Metric droppedByTask() {
            String task = context().taskId().toString();
            return context().metrics().metrics().entrySet().stream()
                    .filter(each -> each.getKey().name().equals(DROPPED_TOTAL))
                    .filter(each -> task.equals(each.getKey().tags().get("task-id")))
                    .map(Map.Entry::getValue)
                    .findFirst()
                    .orElseThrow();
        }
    }

    /** The places of views that were dropped as late, a line each, written before anybody is told of them. */
    private static final class Late {
        private final Lines lines;

        Late(Path path) throws IOException {
            lines = new Lines(path);
        }

        void name(byte[] place) {
            try {
                lines.add(new String(place, StandardCharsets.UTF_8));
            } catch (IOException error) {
                end(error);
            }
        }
    }

    /**
     * Tells how far the job is, by what is committed and not by what it means to do.
     *
     * A committed offset of the run's topic says only that its views lie in the topic between the two halves. So such
     * offsets are told when all that lay there afterwards is committed too. The first line also says what this start
     * began with: where no record of a partition came yet, that is what is committed. Of files no more is told than lies
     * before the seam: what Kafka has too may count from there.
     */
    private static final class Progress extends Thread {
        private static final int POLL_EVERY_MS = 100;
        private final int partitions;
        private final String application;
        private final Admin admin;
        private final Path path;
        private int batch;
        private Part part;
        private String between;
        private KafkaStreams streams;
        private Map<Integer, Long> begun;
        private Map<Integer, Long> told = Map.of();
        private Map<Integer, Long> done = Map.of(); // of this part
        private Map<Integer, Long> wanted = Map.of();
        private Map<Integer, Long> wantedBetween = Map.of();
        private long droppedBefore; // in earlier parts

        Progress(int partitions, String application, Admin admin, Path path) throws IOException {
            this.partitions = partitions;
            this.application = application;
            this.admin = admin;
            this.path = path;
            if (Files.exists(path)) {
                append("\n"); // a crash may have torn the last line: let it cost only itself
                try (Stream<String> lines = Files.lines(path)) {
                    this.batch = (int) lines.filter(line -> !line.isBlank()).count();
                }
            }
        }

        /** What is about to start. */
        synchronized void follow(Part part, String between, KafkaStreams streams, Map<Integer, Long> begun) {
            this.part = part;
            this.between = between;
            this.streams = streams;
            this.begun = begun;
            done = wanted = wantedBetween = Map.of();
        }

        /** All that its part of the input holds is counted. */
        synchronized void awaitEnd() throws InterruptedException {
            List<Long> ends = part.history().ends();
            while (!IntStream.range(0, partitions).allMatch(each -> done.getOrDefault(each, 0L) >= ends.get(each))) {
                wait();
            }
            droppedBefore = dropped();
        }

        @Override
        public void run() {
            while (true) {
                try {
                    look();
                } catch (ExecutionException away) {
                    // Kafka does not answer: there is nothing to tell.
                } catch (IOException | InterruptedException error) {
                    end(error);
                }
                try {
                    Thread.sleep(POLL_EVERY_MS);
                } catch (InterruptedException error) {
                    end(error);
                }
            }
        }

        private synchronized void look() throws ExecutionException, InterruptedException, IOException {
            if (streams == null || streams.state() != KafkaStreams.State.RUNNING) {
                return;
            }
            Map<TopicPartition, Long> committed = committed();
            Map<Integer, Long> stable = ends(IsolationLevel.READ_COMMITTED);
            Map<Integer, Long> ends = ends(IsolationLevel.READ_UNCOMMITTED);
            Map<Integer, Long> taken = of(between, committed);
            boolean all = IntStream.range(0, partitions).allMatch(each -> {
                long offset = taken.getOrDefault(each, 0L);
                // Where no transaction is open, the last record is the mark of the last one's end, which nobody reads.
                long end = ends.get(each) - (ends.get(each).equals(stable.get(each)) ? 1 : 0);
                return offset >= end || offset >= wantedBetween.getOrDefault(each, 0L);
            });
            if (!all) {
                return;
            }
            if (!wanted.isEmpty() && !beforeTheSeam(wanted).equals(told)) {
                write(beforeTheSeam(wanted));
            }
            done = wanted;
            notifyAll();
            wanted = of(part.topic(), committed);
            wantedBetween = ends;
        }

        private Map<Integer, Long> beforeTheSeam(Map<Integer, Long> offsets) {
            if (part.history() == null) {
                return offsets;
            }
            List<Long> seam = part.history().seam();
            Map<Integer, Long> found = new TreeMap<>(offsets);
            found.replaceAll((partition, offset) -> Math.min(offset, seam.get(partition)));
            return found;
        }

        private Map<TopicPartition, Long> committed() throws ExecutionException, InterruptedException {
            Map<TopicPartition, Long> offsets = new HashMap<>();
            admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get()
                    .forEach((place, at) -> offsets.put(place, at.offset()));
            return offsets;
        }

        private Map<Integer, Long> ends(IsolationLevel isolation) throws ExecutionException, InterruptedException {
            Map<TopicPartition, OffsetSpec> asked = IntStream.range(0, partitions)
                    .mapToObj(each -> new TopicPartition(between, each))
                    .collect(Collectors.toMap(place -> place, place -> OffsetSpec.latest()));
            Map<TopicPartition, Long> offsets = new HashMap<>();
            admin.listOffsets(asked, new ListOffsetsOptions(isolation)).all().get()
                    .forEach((place, found) -> offsets.put(place, found.offset()));
            return of(between, offsets);
        }

        private static Map<Integer, Long> of(String topic, Map<TopicPartition, Long> offsets) {
            Map<Integer, Long> found = new TreeMap<>();
            offsets.forEach((place, offset) -> {
                if (place.topic().equals(topic)) {
                    found.put(place.partition(), offset);
                }
            });
            return found;
        }

        private void write(Map<Integer, Long> offsets) throws IOException {
            Map<String, Object> line = new HashMap<>(Map.of(
                    "at", System.currentTimeMillis(),
                    "batch", batch++,
                    "rows", sum(offsets) - sum(told),
                    "offsets", offsets,
                    "dropped", dropped()));
            if (told.isEmpty()) {
                Map<Integer, Long> restored = new TreeMap<>(offsets);
                restored.putAll(begun);
                line.put("restored", restored);
            }
            append(JSON.writeValueAsString(line) + "\n");
            told = offsets;
        }

        private static long sum(Map<Integer, Long> offsets) {
            return offsets.values().stream().mapToLong(Long::longValue).sum();
        }

        /** What Kafka Streams itself says to have left out, since this start. */
        private long dropped() {
            return droppedBefore + streams.metrics().values().stream()
                    .filter(metric -> metric.metricName().name().equals(DROPPED_TOTAL))
                    .mapToLong(metric -> (long) number(metric))
                    .sum();
        }

        private void append(String text) throws IOException {
            Files.writeString(path, text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
    }
}
