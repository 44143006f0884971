package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Map;

/** An ad was viewed: what the job counts. */
record View(String campaign, long timeMs) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Null of another event, and of what is no event. `campaigns`: of each ad. */
    static View parse(byte[] record, Map<String, String> campaigns) {
        try {
            JsonNode event = JSON.readTree(record);
            String campaign = campaigns.get(event.path("ad_id").asText());
            boolean isView = event.path("event_type").asText().equals("view");
            long timeMs = Long.parseLong(event.path("event_time").asText());
            return isView && campaign != null ? new View(campaign, timeMs) : null;
        } catch (IOException | RuntimeException noEvent) {
            return null;
        }
    }
}
