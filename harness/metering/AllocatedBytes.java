import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;

/**
 * Reports how many bytes all threads of its JVM have allocated, except its own thread. It answers on a socket, and
 * writes a file ten times a second, which remains when the JVM has ended. On a second socket it collects the garbage
 * before it answers.
 *
 * <p>Its argument is a folder; file and socket are named by the process and the time of its start. An error here must
 * never reach the job.
 */
public final class AllocatedBytes implements Runnable {
    private static final long PERIOD_MS = 100;

    private final ByteBuffer answer = ByteBuffer.allocateDirect(Long.BYTES);
    private final String place;
    private ThreadMXBean threads;
    private Method total;
    private Map<Long, Long> alive = new HashMap<>();
    private long ended;
    private long told;

    private AllocatedBytes(String place) {
        this.place = place;
    }

    public static void premain(String folder) {
        try {
            String name = ProcessHandle.current().pid() + "-" + System.currentTimeMillis();
            AllocatedBytes told = new AllocatedBytes(folder + "/" + name);
            Thread thread = new Thread(told, "streamgauge-allocated-bytes");
            thread.setDaemon(true);
            thread.start();
        } catch (Throwable error) {
            // the job does not need it
        }
    }

    /** Exists since Java 21 and in late updates of 17; it includes threads that ended between two reads. */
    private static Method total() {
        try {
            return ThreadMXBean.class.getMethod("getTotalThreadAllocatedBytes");
        } catch (NoSuchMethodException error) {
            return null;
        }
    }

    @Override
    public void run() {
        try {
            threads = (ThreadMXBean) ManagementFactory.getThreadMXBean(); // here, so that no start waits for it
            total = total();
            tell();
        } catch (Throwable error) {
            // an uncaught error would be printed into the job's output
        }
    }

    private void tell() throws IOException {
        Path file = Path.of(place);
        try (FileChannel last = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
                ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                ServerSocketChannel collector = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                Selector selector = Selector.open()) {
            publish(last);
            listen(collector, ".collect", selector);
            listen(server, ".socket", selector);
            while (true) {
                selector.select(PERIOD_MS);
                selector.selectedKeys().clear();
                publish(last);
                reply(server, false);
                reply(collector, true);
            }
        }
    }

    private void listen(ServerSocketChannel server, String suffix, Selector selector) throws IOException {
        server.bind(UnixDomainSocketAddress.of(place + suffix));
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
    }

    private void publish(FileChannel last) {
        long bytes = total == null ? seen() : exact();
        told = Math.max(told, bytes);
        try {
            last.write(answer.clear().putLong(told).flip(), 0);
        } catch (IOException error) {
            // a full disk: the socket still answers
        }
    }

    private void reply(ServerSocketChannel server, boolean collects) {
        try (SocketChannel client = server.accept()) {
            if (client != null) {
                if (collects) {
                    System.gc();
                }
                client.write(answer.clear().putLong(told).flip());
            }
        } catch (IOException error) {
            // the client has gone
        }
    }

    private long exact() {
        try {
            return (Long) total.invoke(threads) - threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        } catch (ReflectiveOperationException error) {
            return told;
        }
    }

    /** The last value of an ended thread is kept. */
    private long seen() {
        long[] ids = threads.getAllThreadIds();
        long[] bytes = threads.getThreadAllocatedBytes(ids);
        long own = Thread.currentThread().getId();
        Map<Long, Long> now = new HashMap<>();
        long sum = 0;
        for (int each = 0; each < ids.length; each++) {
            if (ids[each] != own && bytes[each] >= 0) {
                now.put(ids[each], bytes[each]);
                alive.remove(ids[each]);
                sum += bytes[each];
            }
        }
        for (long gone : alive.values()) {
            ended += gone;
        }
        alive = now;
        return sum + ended;
    }
}
