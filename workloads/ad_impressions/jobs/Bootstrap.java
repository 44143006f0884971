import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.OperatorTransformation;
import org.apache.flink.state.api.SavepointWriter;
import org.apache.flink.state.api.StateBootstrapTransformation;
import org.apache.flink.state.api.functions.StateBootstrapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.Collector;

/**
 * The state with which the Flink job begins, made from files by a batch: a savepoint, by Flink's State Processor API.
 *
 * That writes the state of operators, and not that of a source: where Kafka begins, the job has to say. What the files
 * hold goes to Redis too, for cells that no later event touches would never be written.
 */
final class Bootstrap {
    private static final int MOST_PARALLEL = 128; // Flink's own for few tasks; the job can't go on with another one

    static void write(JsonNode config, WhatCounts counts, Path savepoint) throws Exception {
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        flink.setRuntimeMode(RuntimeExecutionMode.BATCH);
        DataStream<FlinkRecords.Logged> records = flink.fromSource(
                HistoryFormat.source(config.get("history").get("folder").asText()),
                WatermarkStrategy.noWatermarks(),
                "files",
                FlinkRecords.Logged.TYPE);
        DataStream<FlinkRecords.Counted> events = records.flatMap(new ToCounted(counts))
                .returns(FlinkRecords.Counted.TYPE)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<FlinkRecords.Counted>noWatermarks()
                        .withTimestampAssigner((event, otherMs) -> event.timeMs()));
        DataStream<FlinkRecords.Reach> reaches = records.map(counts::reach, FlinkRecords.Reach.TYPE)
                .keyBy(FlinkRecords.Reach::partition, Types.INT)
                .reduce(new Furthest());
        TumblingEventTimeWindows windows =
                TumblingEventTimeWindows.of(Duration.ofMillis(config.get("window_ms").asLong()));
        StateBootstrapTransformation<FlinkRecords.Counted> cells = OperatorTransformation.bootstrapWith(events)
                .keyBy(FlinkRecords.Counted::key, Types.STRING)
                .window(windows)
                .trigger(new FlinkJob.AtEachEvent())
                .aggregate(new FlinkJob.Count(), new FlinkJob.Cell(), Types.LONG);
        SavepointWriter.newSavepoint(flink, new HashMapStateBackend(), MOST_PARALLEL)
                .withOperator(OperatorIdentifier.forUid(FlinkJob.COUNTS), cells)
                .withOperator(
                        OperatorIdentifier.forUid(FlinkJob.VIEWS),
                        OperatorTransformation.bootstrapWith(reaches).transform(new Reaches()))
                .write(savepoint.toUri().toString());
        events.keyBy(FlinkRecords.Counted::key, Types.STRING)
                .window(windows)
                .aggregate(new FlinkJob.Count(), new FlinkJob.Cell(), Types.LONG, FlinkRecords.Total.TYPE)
                .sinkTo(new TotalsSink(config));
        flink.execute("state from files");
    }

    private record ToCounted(WhatCounts counts) implements FlatMapFunction<FlinkRecords.Logged, FlinkRecords.Counted> {
        @Override
        public void flatMap(FlinkRecords.Logged record, Collector<FlinkRecords.Counted> out) {
            FlinkRecords.Counted counted = counts.event(record);
            if (counted != null) {
                out.collect(counted);
            }
        }
    }

    private static final class Furthest implements ReduceFunction<FlinkRecords.Reach> {
        @Override
        public FlinkRecords.Reach reduce(FlinkRecords.Reach one, FlinkRecords.Reach other) {
            return new FlinkRecords.Reach(
                    one.partition(), Math.max(one.next(), other.next()), Math.max(one.newestMs(), other.newestMs()));
        }
    }

    /** The state of Views. */
    private static final class Reaches extends StateBootstrapFunction<FlinkRecords.Reach> {
        private transient ListState<FlinkRecords.Reach> saved;
        private transient List<FlinkRecords.Reach> found;

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            saved = context.getOperatorStateStore().getListState(Views.reaches());
            found = new ArrayList<>();
        }

        @Override
        public void processElement(FlinkRecords.Reach reach, Context context) {
            found.add(reach);
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            saved.update(found);
        }
    }

    private Bootstrap() {}
}
