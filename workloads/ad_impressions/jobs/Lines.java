import java.io.BufferedWriter;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file that grows by lines, each of them whole before the next one. A crash may tear the last: it costs only itself. */
final class Lines implements Closeable {
    private final BufferedWriter file;

    Lines(Path path) throws IOException {
        boolean again = Files.exists(path);
        file = Files.newBufferedWriter(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        if (again) {
            file.newLine();
        }
    }

    synchronized void add(String line) throws IOException {
        file.write(line);
        file.newLine();
        file.flush();
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
