import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.server.common.MetadataVersion;

/** How an image is stamped and written; eligible leader replicas are written only when they are asked for. */
final class Images {
    private Images() {
    }

    static MetadataProvenance provenance(long offset) {
        return new MetadataProvenance(offset, 0, 0, true);
    }

    static ImageWriterOptions options() {
        return new ImageWriterOptions.Builder(MetadataVersion.latestProduction())
            .setEligibleLeaderReplicasEnabled(true).build();
    }
}
