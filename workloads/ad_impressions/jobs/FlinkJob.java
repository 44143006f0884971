import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.source.hybrid.HybridSource;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.KafkaSourceBuilder;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.triggers.TriggerResult;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.common.TopicPartition;
import redis.clients.jedis.Jedis;
import sun.misc.Signal;

/**
 * The Flink job in Java: ad impressions from files and Kafka, counted per campaign and window, into Redis.
 *
 * <pre>java -cp JARS FlinkJob CONFIG.json</pre>
 *
 * Windows by the events' own time. Each event makes its window tell its count, so that counts are seen to grow; the
 * watermark only closes windows. Each operator has an id, by which a later version of the job finds its state.
 * SIGTERM ends it with a savepoint. Started again with the same checkpoint folder it goes on where it was.
 */
public final class FlinkJob {
    private static final String OWN_OPTION = "streamgauge."; // meant for this job: Flink never sees it
    private static final String LATE = OWN_OPTION + "late"; // whether each event that is dropped as late is named
    private static final String NAMED = "named"; // its only value
    private static final String IDS = OWN_OPTION + "ids"; // false: operators have none of ours
    private static final String HISTORY = OWN_OPTION + "history"; // how files and Kafka are read as one
    private static final String HYBRID = "hybrid"; // by one source
    private static final String BOOTSTRAPPED = "bootstrapped"; // a batch makes state of the files
    private static final String RESTORED = "execution.state-recovery.path";
    private static final String UNALIGNED = "execution.checkpointing.unaligned.enabled";
    static final String VIEWS = "views"; // the ids of the operators that have a state: how far each partition is ...
    static final String COUNTS = "counts"; // ... and the cells
    private static final String METADATA = "_metadata"; // of a checkpoint; Flink writes it last
    private static final String NUMBERED = "chk-";
    private static final String SAVEPOINTS = "savepoints";
    private static final Set<String> PLACES =
            Set.of("pipeline.name", RESTORED, "execution.checkpointing.dir", "io.tmp.dirs");
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        JsonNode config = JSON.readTree(new File(arguments[0]));
        start(config, seam(config));
    }

    /** `begins`: where Kafka is to be read from; nothing: from its beginning. */
    static void start(JsonNode config, Map<Integer, Long> begins) {
        try {
            run(config, begins);
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1); // threads of Flink's would live on
        }
    }

    /** Until SIGTERM, or until the job fails; it never ends by itself. */
    private static void run(JsonNode config, Map<Integer, Long> begins) throws Exception {
        CompletableFuture<Object> stopped = new CompletableFuture<>();
        Signal.handle(new Signal("TERM"), signal -> stopped.complete(signal));
        // Native libraries are unpacked there, and a killed JVM can't remove them: they go with the run's own folder.
        System.setProperty("java.io.tmpdir", System.getenv().getOrDefault("TMPDIR", "/tmp"));
        Path folder = checkpointFolder(config);
        if (isBootstrapped(config) && newestCheckpoint(folder).isEmpty()) {
            Bootstrap.write(config, whatCounts(config), folder.resolve(SAVEPOINTS).resolve(NUMBERED + 0));
        }
        Map<String, String> settings = settings(config, folder);
        tell(settings, progressPath(config).resolveSibling("engine_settings.json"));
        StreamExecutionEnvironment flink =
                StreamExecutionEnvironment.getExecutionEnvironment(Configuration.fromMap(settings));
        count(flink, config, begins);
        JobClient job = flink.executeAsync(settings.get("pipeline.name"));
        CompletableFuture.anyOf(stopped, job.getJobExecutionResult()).get();
        end(job, folder);
    }

    // What it counts.

    private static void count(StreamExecutionEnvironment flink, JsonNode config, Map<Integer, Long> begins) {
        boolean named = isNamed(config);
        // Without ids of ours Flink makes its own, of all operators that come before one.
        boolean ids = !"false".equals(texts(config.get("options")).get(IDS));
        OutputTag<FlinkRecords.Counted> late = new OutputTag<>("late", FlinkRecords.Counted.TYPE);
        SingleOutputStreamOperator<FlinkRecords.Logged> records = flink.fromSource(
                        source(config, begins), WatermarkStrategy.noWatermarks(), "records", FlinkRecords.Logged.TYPE)
                .setParallelism(1);
        SingleOutputStreamOperator<FlinkRecords.Counted> events = (ids ? records.uid("records") : records)
                .transform("views", FlinkRecords.Counted.TYPE, views(config))
                .setParallelism(1);
        WindowedStream<FlinkRecords.Counted, String, TimeWindow> cells = (ids ? events.uid(VIEWS) : events)
                .keyBy(FlinkRecords.Counted::key, Types.STRING)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(config.get("window_ms").asLong())))
                .trigger(new AtEachEvent());
        SingleOutputStreamOperator<FlinkRecords.Total> totals = (named ? cells.sideOutputLateData(late) : cells)
                .aggregate(new Count(), new Cell(), Types.LONG, FlinkRecords.Total.TYPE);
        (ids ? totals.uid(COUNTS) : totals).sinkTo(new TotalsSink(config));
        if (named) {
            Path path = progressPath(config).resolveSibling("late.jsonl");
            totals.getSideOutput(late).sinkTo(new LateSink(path)).setParallelism(1);
        }
    }

    private static WhatCounts whatCounts(JsonNode config) {
        JsonNode untilMs = config.path("history").path("until_ms");
        try (Jedis redis = HighestTotals.connect(config.get("redis").asText())) {
            String prefix = config.get("redis_prefix").asText();
            AdViews views = new AdViews(texts(config.get("options")), AdViews.readAds(redis, prefix));
            return new WhatCounts(views, untilMs.isNumber() ? untilMs.asLong() : null);
        }
    }

    private static Views views(JsonNode config) {
        int partitions = config.get("partitions").asInt();
        long latenessMs = config.get("watermark_ms").asLong();
        return new Views(whatCounts(config), partitions, latenessMs, progressPath(config));
    }

    static final class Count implements AggregateFunction<FlinkRecords.Counted, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(FlinkRecords.Counted event, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    static final class Cell implements WindowFunction<Long, FlinkRecords.Total, String, TimeWindow> {
        @Override
        public void apply(String key, TimeWindow window, Iterable<Long> counts, Collector<FlinkRecords.Total> out) {
            counts.forEach(count -> out.collect(new FlinkRecords.Total(key, window.getStart(), count)));
        }
    }

    /** Flink itself clears a window when the watermark has passed its end. */
    static final class AtEachEvent extends Trigger<Object, TimeWindow> {
        @Override
        public TriggerResult onElement(Object event, long timeMs, TimeWindow window, TriggerContext context) {
            return TriggerResult.FIRE;
        }

        @Override
        public TriggerResult onProcessingTime(long timeMs, TimeWindow window, TriggerContext context) {
            return TriggerResult.CONTINUE;
        }

        @Override
        public TriggerResult onEventTime(long timeMs, TimeWindow window, TriggerContext context) {
            return TriggerResult.CONTINUE;
        }

        @Override
        public void clear(TimeWindow window, TriggerContext context) {}
    }

    // What it reads.

    private static Source<FlinkRecords.Logged, ?, ?> source(JsonNode config, Map<Integer, Long> begins) {
        KafkaSource<FlinkRecords.Logged> kafka = kafka(config, begins);
        JsonNode history = config.get("history");
        return history.isNull() || isBootstrapped(config)
                ? kafka
                : HybridSource.builder(HistoryFormat.source(history.get("folder").asText())).addSource(kafka).build();
    }

    private static boolean isBootstrapped(JsonNode config) {
        String asked = texts(config.get("options")).getOrDefault(HISTORY, HYBRID);
        if (!asked.equals(HYBRID) && !asked.equals(BOOTSTRAPPED)) {
            throw new IllegalArgumentException(
                    HISTORY + " is '" + asked + "'; give '" + HYBRID + "' or '" + BOOTSTRAPPED + "'.");
        }
        return asked.equals(BOOTSTRAPPED) && !config.get("history").isNull();
    }

    /** By a seam in time files and Kafka overlap, and which of their events count is decided behind. */
    static Map<Integer, Long> seam(JsonNode config) {
        JsonNode history = config.get("history");
        JsonNode begins = history.path(history.path("until_ms").isNumber() ? "begins" : "ends");
        return IntStream.range(0, begins.size()).boxed().collect(Collectors.toMap(each -> each, each -> begins.get(each)
                .asLong()));
    }

    private static KafkaSource<FlinkRecords.Logged> kafka(JsonNode config, Map<Integer, Long> begins) {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        begins.forEach((partition, offset) ->
                offsets.put(new TopicPartition(config.get("topic").asText(), partition), offset));
        Properties connection = new Properties();
        connection.putAll(texts(config.get("kafka").get("java")));
        KafkaSourceBuilder<FlinkRecords.Logged> kafka = KafkaSource.<FlinkRecords.Logged>builder()
                .setBootstrapServers(config.get("kafka").get("bootstrap").asText())
                .setTopics(config.get("topic").asText())
                .setProperties(connection)
                .setDeserializer(new FromKafka())
                .setStartingOffsets(
                        offsets.isEmpty()
                                ? OffsetsInitializer.earliest()
                                : OffsetsInitializer.offsets(offsets, OffsetResetStrategy.NONE));
        return kafka.build();
    }

    private static final class FromKafka implements KafkaRecordDeserializationSchema<FlinkRecords.Logged> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<FlinkRecords.Logged> out) {
            out.collect(new FlinkRecords.Logged(record.partition(), record.offset(), false, record.value()));
        }

        @Override
        public TypeInformation<FlinkRecords.Logged> getProducedType() {
            return FlinkRecords.Logged.TYPE;
        }
    }

    // What it is told.

    /** All that is not Flink's default; what `--conf` says wins. */
    private static Map<String, String> settings(JsonNode config, Path folder) throws IOException {
        int parallelism = Math.min(Runtime.getRuntime().availableProcessors(), config.get("partitions").asInt());
        Map<String, String> settings = new TreeMap<>();
        settings.put("pipeline.name", "streamgauge-" + config.get("run").asText());
        settings.put("parallelism.default", Integer.toString(parallelism));
        settings.put("pipeline.generic-types", "false"); // all that is kept or sent has a serializer of its own
        settings.put("pipeline.object-reuse", "true"); // and nothing of it ever changes
        settings.put("execution.checkpointing.interval", "1 s");
        settings.put("execution.checkpointing.dir", folder.toUri().toString());
        settings.put("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        newestCheckpoint(folder).ifPresent(newest -> settings.put(RESTORED, newest.toUri().toString()));
        settings.put("execution.checkpointing.num-retained", "3"); // who copies one has the time
        settings.put("io.tmp.dirs", System.getProperty("java.io.tmpdir"));
        settings.put("rest.address", "127.0.0.1");
        settings.put("rest.bind-address", "127.0.0.1");
        settings.putAll(texts(config.get("options")));
        settings.keySet().removeIf(key -> key.startsWith(OWN_OPTION));
        if (Boolean.parseBoolean(settings.get(UNALIGNED))) {
            throw new IllegalArgumentException(
                    UNALIGNED + " = true: what such a checkpoint holds may not be written yet, and this job tells it as "
                            + "done. Leave it out, or take the engine flink, which looks into each checkpoint.");
        }
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
            throw new IllegalArgumentException(LATE + " is '" + asked + "'; the only value is '" + NAMED + "'.");
        }
        return asked.equals(NAMED);
    }

    private static Path progressPath(JsonNode config) {
        return Path.of(config.get("progress_path").asText());
    }

    private static void tell(Map<String, String> settings, Path path) throws IOException {
        Map<String, String> told = new TreeMap<>(settings);
        told.keySet().removeAll(PLACES);
        Path part = path.resolveSibling(".engine_settings.json.part");
        Files.write(part, JSON.writeValueAsBytes(told));
        Files.move(part, path, StandardCopyOption.ATOMIC_MOVE);
    }

    // Where it goes on.

    private static Path checkpointFolder(JsonNode config) throws IOException {
        String place = config.get("checkpoint").asText().replaceFirst("^file://", "");
        if (place.contains("://")) {
            throw new IllegalArgumentException("checkpoint is '" + place
                    + "'; give a folder of this machine: this job looks there for its newest one.");
        }
        return Files.createDirectories(Path.of(place).toAbsolutePath());
    }

    /** Of all starts: each is a job of its own to Flink, and the numbers go on from start to start. */
    private static Optional<Path> newestCheckpoint(Path folder) throws IOException {
        try (Stream<Path> found = Files.find(folder, 2, (path, what) -> isComplete(path))) {
            return found.max(Comparator.comparing(path -> Long.parseLong(
                    path.getFileName().toString().substring(NUMBERED.length()))));
        }
    }

    private static boolean isComplete(Path path) {
        return path.getFileName().toString().startsWith(NUMBERED) && Files.exists(path.resolve(METADATA));
    }

    /** A copy of a savepoint is whole, and one of a checkpoint reads the files of the original. */
    private static void end(JobClient job, Path folder) throws Exception {
        try {
            String savepoint = job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.CANONICAL)
                    .get();
            keep(Path.of(URI.create(savepoint)));
        } catch (ExecutionException error) { // it is being restored, for one
            System.err.println("There is no savepoint, and the newest checkpoint stays: " + error.getMessage());
            job.cancel().get();
        }
    }

    /** Where it is found as the newest of them: it has a number too. */
    private static void keep(Path savepoint) throws IOException {
        Path kept = Files.createDirectories(savepoint.resolveSibling(SAVEPOINTS));
        try (DataInputStream metadata = new DataInputStream(Files.newInputStream(savepoint.resolve(METADATA)))) {
            metadata.readInt(); // a mark
            metadata.readInt(); // the version of its format
            Files.move(savepoint, kept.resolve(NUMBERED + metadata.readLong()));
        }
    }
}
