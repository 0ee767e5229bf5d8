package tablelog;

import java.net.URI;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;

// The files of a Delta table for Spark's planner. Python selects them. Spark compares and describes relations many times
// in each query: what doesn't change is here, so that this costs no call to Python.
public class DeltaFileIndex implements FileIndex {
    private final FileIndex python;
    private final String key;
    private final String identity;
    private final StructType partitionSchema;
    private final Seq rootPaths;

    public DeltaFileIndex(FileIndex python, String key, String identity, StructType partitionSchema, String root) {
        this.python = python;
        this.key = key;
        this.identity = identity;
        this.partitionSchema = partitionSchema;
        // The table's path twice, because Spark's own writer only accepts a relation with exactly one root path. That
        // writer would add files that no commit references, or delete the directory with its log. Spark's other uses of
        // root paths (checks for reading while overwriting, cached plans) need the path, but not the count.
        Path path = new Path(URI.create(root));
        this.rootPaths = (Seq) List$.MODULE$.empty().$colon$colon(path).$colon$colon(path);
    }

    // Python creates an index by one call: it can't pass its objects to a constructor.
    public static class Factory {
        public DeltaFileIndex create(
                FileIndex python, String key, String identity, StructType partitionSchema, String root) {
            return new DeltaFileIndex(python, key, identity, partitionSchema, root);
        }
    }

    // The index in Python by this key (`file_index.index_of`).
    public String key() {
        return key;
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        return python.listFiles(partitionFilters, dataFilters);
    }

    public String[] inputFiles() {
        return python.inputFiles();
    }

    public long sizeInBytes() {
        return python.sizeInBytes();
    }

    public void refresh() {}

    public Seq rootPaths() {
        return rootPaths;
    }

    public StructType partitionSchema() {
        return partitionSchema;
    }

    // Relations with equal text read the same files, so that one can use the other's cached data.
    public boolean equals(Object other) {
        return other instanceof DeltaFileIndex && identity.equals(((DeltaFileIndex) other).identity);
    }

    public int hashCode() {
        return identity.hashCode();
    }

    public String toString() {
        return identity;
    }
}
