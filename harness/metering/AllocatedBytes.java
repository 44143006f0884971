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
 * Tells how many bytes all threads of its JVM have allocated, those of its own thread left out: whom it asks by a
 * socket, and ten times a second in a file, which is there when the JVM is not any more.
 *
 * <p>Its argument is a folder; file and socket are named by the process and the time of its start. Whatever fails here
 * is nothing that the job should hear of.
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

    /** Since Java 21 and in late updates of 17; it also knows of threads that ended unseen. */
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
            // a thread that it ended would print it
        }
    }

    private void tell() throws IOException {
        Path file = Path.of(place);
        try (FileChannel last = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
                ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                Selector selector = Selector.open()) {
            publish(last);
            server.bind(UnixDomainSocketAddress.of(place + ".socket"));
            server.configureBlocking(false);
            server.register(selector, SelectionKey.OP_ACCEPT);
            while (true) {
                selector.select(PERIOD_MS);
                selector.selectedKeys().clear();
                publish(last);
                reply(server);
            }
        }
    }

    private void publish(FileChannel last) {
        long bytes = total == null ? seen() : exact();
        told = Math.max(told, bytes);
        try {
            last.write(answer.clear().putLong(told).flip(), 0);
        } catch (IOException error) {
            // a full disk: the socket still tells
        }
    }

    private void reply(ServerSocketChannel server) {
        try (SocketChannel client = server.accept()) {
            if (client != null) {
                client.write(answer.clear().putLong(told).flip());
            }
        } catch (IOException error) {
            // who asked has gone
        }
    }

    private long exact() {
        try {
            return (Long) total.invoke(threads) - threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        } catch (ReflectiveOperationException error) {
            return told;
        }
    }

    /** A thread that has ended keeps what was seen of it. */
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
