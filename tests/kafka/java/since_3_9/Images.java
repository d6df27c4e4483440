import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.server.common.MetadataVersion;

/** How an image is stamped and written; 3.9 has no eligible leader replicas to leave out. */
final class Images {
    private Images() {
    }

    static MetadataProvenance provenance(long offset) {
        return new MetadataProvenance(offset, 0, 0);
    }

    static ImageWriterOptions options() {
        return new ImageWriterOptions.Builder().setMetadataVersion(MetadataVersion.latestProduction()).build();
    }
}
