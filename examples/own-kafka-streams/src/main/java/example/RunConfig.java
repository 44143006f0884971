package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** What a run asks of the job: the JSON file whose path streamgauge gives as `{config}`. */
final class RunConfig {
    private final JsonNode json;

    private RunConfig(JsonNode json) {
        this.json = json;
    }

    static RunConfig read(String path) throws IOException {
        return new RunConfig(new ObjectMapper().readTree(new File(path)));
    }

    String topic() {
        return json.get("topic").asText();
    }

    int partitions() {
        return json.get("partitions").asInt();
    }

    String brokers() {
        return json.get("kafka").get("bootstrap").asText();
    }

    /** Security settings, if the broker wants any. */
    Properties kafka() {
        Properties settings = new Properties();
        settings.putAll(texts(json.get("kafka").get("java")));
        return settings;
    }

    URI redis() {
        return URI.create(json.get("redis").asText());
    }

    /** What the keys of Redis begin with. */
    String prefix() {
        return json.get("redis_prefix").asText();
    }

    long windowMs() {
        return json.get("window_ms").asLong();
    }

    /** How late an event may be. */
    long watermarkMs() {
        return json.get("watermark_ms").asLong();
    }

    /** A folder of the job's own, which is there again when it is started again. */
    Path checkpoint() {
        return Path.of(json.get("checkpoint").asText());
    }

    /** `options` of the manifest, and what was given as `--conf`. */
    Map<String, String> options() {
        return texts(json.get("options"));
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        object.properties().forEach(field -> found.put(field.getKey(), field.getValue().asText()));
        return found;
    }
}
