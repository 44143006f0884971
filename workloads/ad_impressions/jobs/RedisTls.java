import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;

/** TLS to Redis, by the options in an address of redis-py: the same ones mean the same in every engine. */
final class RedisTls {
    private static final char[] NONE = {};

    private final Map<String, String> options = new HashMap<>();

    RedisTls(URI address) {
        String query = address.getRawQuery();
        for (String pair : query == null ? new String[0] : query.split("&")) {
            String[] halves = pair.split("=", 2);
            options.put(halves[0], URLDecoder.decode(halves.length == 2 ? halves[1] : "", StandardCharsets.UTF_8));
        }
    }

    SSLSocketFactory factory() {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(own().getKeyManagers(), trusted(), null);
            return context.getSocketFactory();
        } catch (GeneralSecurityException | IOException error) {
            throw new IllegalStateException("The certificates that the address of Redis names: " + error, error);
        }
    }

    /** Whether the certificate has to be that of the host in the address. */
    SSLParameters parameters() {
        SSLParameters parameters = new SSLParameters();
        if (verifies() && !List.of("false", "no", "0").contains(option("ssl_check_hostname").toLowerCase())) {
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
        }
        return parameters;
    }

    private boolean verifies() {
        return !option("ssl_cert_reqs").equals("none");
    }

    private String option(String name) {
        return options.getOrDefault(name, "");
    }

    /** Null: what the JVM trusts. */
    private TrustManager[] trusted() throws GeneralSecurityException, IOException {
        if (!verifies()) {
            return new TrustManager[] {new Everyone()};
        }
        if (option("ssl_ca_certs").isEmpty()) {
            return null;
        }
        KeyStore store = empty();
        for (Certificate each : certificates(option("ssl_ca_certs"))) {
            store.setCertificateEntry("authority " + store.size(), each);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory.getTrustManagers();
    }

    private KeyManagerFactory own() throws GeneralSecurityException, IOException {
        KeyStore store = empty();
        if (!option("ssl_certfile").isEmpty()) {
            String key = option("ssl_keyfile").isEmpty() ? option("ssl_certfile") : option("ssl_keyfile");
            store.setKeyEntry("own", key(key), NONE, certificates(option("ssl_certfile")));
        }
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(store, NONE);
        return factory;
    }

    private static KeyStore empty() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, NONE);
        return store;
    }

    /** A key may stand in the same file. */
    private static Certificate[] certificates(String file) throws GeneralSecurityException, IOException {
        String pem = Files.readString(Path.of(file)).replaceAll("(?s)-----BEGIN PRIVATE KEY.*?END PRIVATE KEY-----", "");
        try (InputStream in = new ByteArrayInputStream(pem.getBytes(StandardCharsets.UTF_8))) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
        }
    }

    private static PrivateKey key(String file) throws GeneralSecurityException, IOException {
        String pem = Files.readString(Path.of(file));
        String[] parts = pem.split("-----(BEGIN|END) PRIVATE KEY-----");
        if (parts.length < 3) {
            throw new InvalidKeySpecException(file + " has no key in the form PKCS#8 (BEGIN PRIVATE KEY)");
        }
        PKCS8EncodedKeySpec encoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(parts[1]));
        for (String kind : List.of("RSA", "EC", "EdDSA")) {
            try {
                return KeyFactory.getInstance(kind).generatePrivate(encoded);
            } catch (InvalidKeySpecException error) {
                // a key of another kind
            }
        }
        throw new InvalidKeySpecException(file + " has a key of no known kind: RSA, EC or EdDSA");
    }

    /** ssl_cert_reqs=none: no certificate is looked at. */
    private static final class Everyone extends X509ExtendedTrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String kind) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String kind) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String kind, Socket socket) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String kind, Socket socket) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String kind, SSLEngine engine) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String kind, SSLEngine engine) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
