import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Produces one DDL record with the Java client: Produce BROKERS TOPIC KEY [NAME=VALUE ...] < value. */
public class Produce {
  public static void main(String[] args) throws Exception {
    byte[] value = System.in.readAllBytes();
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("acks", "all");
    ProducerRecord<String, byte[]> record =
        new ProducerRecord<>(args[1], args[2], value.length == 0 ? null : value);
    for (int i = 3; i < args.length; i++) {
      String[] header = args[i].split("=", 2);
      record.headers().add(header[0], header[1].getBytes(StandardCharsets.UTF_8));
    }
    try (KafkaProducer<String, byte[]> producer =
        new KafkaProducer<>(settings, new StringSerializer(), new ByteArraySerializer())) {
      System.out.println(producer.send(record).get().offset());
    }
  }
}
