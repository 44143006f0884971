import java.io.Serializable;

/** Which records count, where some of them may be read twice: in files, and in Kafka. */
record WhatCounts(AdViews views, Long untilMs) implements Serializable {
    static final long NO_EVENT = Long.MIN_VALUE;

    /** Null for what does not. `untilMs`: events before it count from files, and later ones from Kafka; null: all of both. */
    FlinkRecords.Counted event(FlinkRecords.Logged record) {
        AdViews.View view = views.view(record.value());
        return view == null || untilMs != null && record.fromFile() != view.timeMs() < untilMs
                ? null
                : new FlinkRecords.Counted(view.key(), view.timeMs(), record.partition(), record.offset());
    }

    /** How far its partition is with this record. */
    FlinkRecords.Reach reach(FlinkRecords.Logged record) {
        FlinkRecords.Counted event = event(record);
        return new FlinkRecords.Reach(
                record.partition(), record.offset() + 1, event == null ? NO_EVENT : event.timeMs());
    }
}
