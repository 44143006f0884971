import java.io.FileReader;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

/** Asks Kafka for its topics with the settings of each file: what a Java engine would be told, really tried. */
public class Ask {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties settings = new Properties();
            settings.load(new FileReader(file));
            try (Admin admin = Admin.create(settings)) {
                System.out.println(admin.listTopics().names().get(60, TimeUnit.SECONDS));
            }
        }
    }
}
