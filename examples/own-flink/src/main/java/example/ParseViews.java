package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.HashMap;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.util.Collector;

/** Records to views. Other events, and what is no event, are left out here: they say nothing of the time. */
final class ParseViews implements DeserializationSchema<View> {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final HashMap<String, String> campaigns;

    /** `campaigns`: of each ad. */
    ParseViews(HashMap<String, String> campaigns) {
        this.campaigns = campaigns;
    }

    @Override
    public void deserialize(byte[] record, Collector<View> out) {
        View view = deserialize(record);
        if (view != null) {
            out.collect(view);
        }
    }

    @Override
    public View deserialize(byte[] record) {
        try {
            JsonNode event = JSON.readTree(record);
            String campaign = campaigns.get(event.path("ad_id").asText());
            boolean isView = event.path("event_type").asText().equals("view");
            return isView && campaign != null ? new View(campaign, Long.parseLong(event.path("event_time").asText())) : null;
        } catch (IOException | RuntimeException noEvent) {
            return null;
        }
    }

    @Override
    public boolean isEndOfStream(View view) {
        return false;
    }

    @Override
    public TypeInformation<View> getProducedType() {
        return TypeInformation.of(View.class);
    }
}
