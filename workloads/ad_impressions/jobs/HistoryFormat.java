import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.zip.GZIPInputStream;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.CheckpointedPosition;
import org.apache.flink.connector.file.src.util.IteratorResultIterator;
import org.apache.flink.core.fs.Path;

/**
 * Files of older records, a line each. Their names say which: PARTITION-FIRST-END.json, packed with a .gz behind it. So
 * a record has its place in the topic here too.
 */
public final class HistoryFormat implements BulkFormat<FlinkRecords.Logged, FileSourceSplit> {
    private static final int AT_ONCE = 1_000;

    /** All files below a folder, the oldest stretch of all partitions first. */
    static FileSource<FlinkRecords.Logged> source(String folder) {
        return FileSource.forBulkFileFormat(new HistoryFormat(), new Path(folder))
                .setSplitAssigner(OldestFirst::new)
                .build();
    }

    @Override
    public BulkFormat.Reader<FlinkRecords.Logged> createReader(Configuration settings, FileSourceSplit file)
            throws IOException {
        return new Reader(file.path(), 0);
    }

    @Override
    public BulkFormat.Reader<FlinkRecords.Logged> restoreReader(Configuration settings, FileSourceSplit file)
            throws IOException {
        return new Reader(
                file.path(),
                file.getReaderPosition().map(CheckpointedPosition::getRecordsAfterOffset).orElse(0L));
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<FlinkRecords.Logged> getProducedType() {
        return FlinkRecords.Logged.TYPE;
    }

    private static final class Reader implements BulkFormat.Reader<FlinkRecords.Logged> {
        private final InputStream lines;
        private final int partition;
        private final long first;
        private long taken;

        Reader(Path path, long taken) throws IOException {
            String[] name = path.getName().split("[-.]");
            this.partition = Integer.parseInt(name[0]);
            this.first = Long.parseLong(name[1]);
            InputStream content = path.getFileSystem().open(path);
            this.lines = new BufferedInputStream(path.getName().endsWith(".gz") ? new GZIPInputStream(content) : content);
            while (this.taken < taken && next() != null) {
                // it was read before
            }
        }

        @Override
        public RecordIterator<FlinkRecords.Logged> readBatch() throws IOException {
            long before = taken;
            List<FlinkRecords.Logged> batch = new ArrayList<>(AT_ONCE);
            for (FlinkRecords.Logged record = next(); record != null; record = batch.size() < AT_ONCE ? next() : null) {
                batch.add(record);
            }
            return batch.isEmpty()
                    ? null
                    : new IteratorResultIterator<>(batch.iterator(), CheckpointedPosition.NO_OFFSET, before);
        }

        /** Null at the end. */
        private FlinkRecords.Logged next() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream(256);
            int each = lines.read();
            if (each < 0) {
                return null;
            }
            for (; each >= 0 && each != '\n'; each = lines.read()) {
                line.write(each);
            }
            return new FlinkRecords.Logged(partition, first + taken++, true, line.toByteArray());
        }

        @Override
        public void close() throws IOException {
            lines.close();
        }
    }

    /** Flink's own order is any. By this one no partition is further ahead of the others than one file. */
    private static final class OldestFirst implements FileSplitAssigner {
        private final PriorityQueue<FileSourceSplit> files = new PriorityQueue<>(
                Comparator.comparing(FileSourceSplit::fileModificationTime).thenComparing(file -> file.path().toString()));

        OldestFirst(Collection<FileSourceSplit> files) {
            addSplits(files);
        }

        @Override
        public Optional<FileSourceSplit> getNext(String host) {
            return Optional.ofNullable(files.poll());
        }

        @Override
        public void addSplits(Collection<FileSourceSplit> more) {
            files.addAll(more);
        }

        @Override
        public Collection<FileSourceSplit> remainingSplits() {
            return List.copyOf(files);
        }
    }
}
