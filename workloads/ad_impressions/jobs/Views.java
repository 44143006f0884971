import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Records to events that count, each with its own time, and the watermark between them.
 *
 * The clock of a partition is its newest event, wherever it was read, and the watermark is the lowest of all clocks less
 * the time that events may be late. A source of Flink has such clocks too, but one for each file, and they begin anew
 * with each file and each start. These are state: a window that was over stays over after a crash, and files and Kafka
 * have one clock.
 *
 * So that all clocks are in one place there is one of it. It tells how far the job is: what a checkpoint holds was written
 * when that is complete.
 */
final class Views extends AbstractStreamOperator<FlinkRecords.Counted>
        implements OneInputStreamOperator<FlinkRecords.Logged, FlinkRecords.Counted> {
    private static final String REACHES = "reaches";
    private static final long STEP_MS = 50; // a watermark for each event would go to all that count
    private static final ObjectMapper JSON = new ObjectMapper();
    private final WhatCounts counts;
    private final int partitions;
    private final long latenessMs;
    private final String progressPath;
    private transient long[] next;
    private transient long[] newestMs;
    private transient long watermarkMs;
    private transient ListState<FlinkRecords.Reach> saved;
    private transient TreeMap<Long, Done> open; // checkpoints that are not complete yet
    private transient Map<Integer, Long> restored;
    private transient long told;
    private transient Lines progress;

    /** What lies before a checkpoint, and by when windows have to end that are over for it. */
    private record Done(long[] next, long watermarkMs) {}

    Views(WhatCounts counts, int partitions, long latenessMs, Path progressPath) {
        this.counts = counts;
        this.partitions = partitions;
        this.latenessMs = latenessMs;
        this.progressPath = progressPath.toString();
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        next = new long[partitions];
        newestMs = new long[partitions];
        Arrays.fill(newestMs, WhatCounts.NO_EVENT);
        watermarkMs = WhatCounts.NO_EVENT;
        saved = context.getOperatorStateStore().getListState(reaches());
        for (FlinkRecords.Reach reach : saved.get()) {
            next[reach.partition()] = reach.next();
            newestMs[reach.partition()] = reach.newestMs();
        }
        open = new TreeMap<>();
        restored = context.isRestored() ? byPartition(next) : Map.of();
        told = Arrays.stream(next).sum();
        progress = new Lines(Path.of(progressPath));
    }

    @Override
    public void processElement(StreamRecord<FlinkRecords.Logged> element) {
        FlinkRecords.Logged record = element.getValue();
        int partition = record.partition();
        advance();
        next[partition] = Math.max(next[partition], record.offset() + 1);
        FlinkRecords.Counted event = counts.event(record);
        if (event != null) {
            newestMs[partition] = Math.max(newestMs[partition], event.timeMs());
            output.collect(new StreamRecord<>(event, event.timeMs()));
        }
    }

    static ListStateDescriptor<FlinkRecords.Reach> reaches() {
        return new ListStateDescriptor<>(REACHES, FlinkRecords.Reach.TYPE);
    }

    /** An event is judged by what came before it. */
    private void advance() {
        long slowestMs = Arrays.stream(newestMs).min().orElse(WhatCounts.NO_EVENT);
        if (slowestMs != WhatCounts.NO_EVENT && slowestMs - latenessMs - 1 >= watermarkMs + STEP_MS) {
            watermarkMs = slowestMs - latenessMs - 1; // it says that no event of this time comes any more
            output.emitWatermark(new Watermark(watermarkMs));
        }
    }

    /** Those of the source say nothing. */
    @Override
    public void processWatermark(Watermark mark) {}

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        List<FlinkRecords.Reach> reaches = new ArrayList<>();
        IntStream.range(0, partitions)
                .forEach(each -> reaches.add(new FlinkRecords.Reach(each, next[each], newestMs[each])));
        saved.update(reaches);
        open.put(context.getCheckpointId(), new Done(next.clone(), Math.max(0, watermarkMs + 1)));
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) throws Exception {
        super.notifyCheckpointComplete(checkpoint);
        Done done = open.get(checkpoint);
        open.headMap(checkpoint, true).clear();
        if (done != null && Arrays.stream(done.next()).sum() > told) {
            tell(checkpoint, done);
        }
    }

    @Override
    public void close() throws Exception {
        super.close();
        if (progress != null) { // it may fail before it has begun
            progress.close();
        }
    }

    private void tell(long checkpoint, Done done) throws IOException {
        long all = Arrays.stream(done.next()).sum();
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("at", System.currentTimeMillis());
        line.put("batch", checkpoint);
        line.put("rows", all - told);
        line.put("offsets", byPartition(done.next()));
        line.put("watermark_ms", done.watermarkMs());
        if (!restored.isEmpty()) {
            line.put("restored", restored);
        }
        progress.add(JSON.writeValueAsString(line));
        told = all;
        restored = Map.of();
    }

    private static Map<Integer, Long> byPartition(long[] offsets) {
        Map<Integer, Long> found = new TreeMap<>();
        IntStream.range(0, offsets.length).forEach(each -> found.put(each, offsets[each]));
        return found;
    }
}
