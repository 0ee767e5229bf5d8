package tablelog;

import java.net.URI;
import java.util.ArrayDeque;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;

// Names the kinds of the statements in a text by one call from Python: most texts are not about Delta tables.
public class StatementKinds {
    // The names of the plans' classes, without WITH clauses, separated by spaces; null if Spark can't parse the text. An
    // INSERT into a table of another format is "InsertElsewhere", and CREATE TABLE of such a table "CreateElsewhere".
    public String of(SparkSession spark, String text) {
        LogicalPlan plan;
        try {
            plan = spark.sessionState().sqlParser().parsePlan(text);
        } catch (Exception refused) {
            return null;
        }
        return kinds(spark, plan);
    }

    private String kinds(SparkSession spark, LogicalPlan plan) {
        if (plan instanceof InsertIntoStatement && isElsewhere(spark, ((InsertIntoStatement) plan).table())) {
            return "InsertElsewhere";
        }
        if (plan instanceof CreateTable && isElsewhere(spark, ((CreateTable) plan).tableSpec())
                || plan instanceof CreateTableAsSelect
                        && isElsewhere(spark, ((CreateTableAsSelect) plan).tableSpec())) {
            return "CreateElsewhere";
        }
        if (!(plan instanceof UnresolvedWith || plan instanceof Union)) return plan.getClass().getSimpleName();
        StringBuilder kinds = new StringBuilder();
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) {
            kinds.append(kinds(spark, (LogicalPlan) children.apply(i))).append(' ');
        }
        return kinds.toString();
    }

    // Whether a relation is surely a table of another format, and its directory no Delta table either.
    private boolean isElsewhere(SparkSession spark, LogicalPlan relation) {
        if (!(relation instanceof UnresolvedRelation)) return false;
        Seq parts = ((UnresolvedRelation) relation).multipartIdentifier();
        String current = spark.sessionState().catalogManager().currentCatalog().name();
        if (parts.size() > 2 || !current.equals("spark_catalog")) return false;
        try {
            SessionCatalog catalog = spark.sessionState().catalog();
            if (catalog.isTempView(parts)) return false;
            Option database = parts.size() == 2 ? Option.apply(parts.apply(0)) : Option.empty();
            CatalogTable entry = catalog.getTableMetadata(new TableIdentifier((String) parts.last(), database));
            if (entry.provider().toString().equalsIgnoreCase("Some(delta)")) return false;
            if (entry.storage().locationUri().isEmpty()) return false;
            return !isInTable(spark, new Path((URI) entry.storage().locationUri().get()));
        } catch (Exception unknown) {
            return false; // Python finds out
        }
    }

    // Whether a new table is surely one of another format, and its directory no Delta table.
    private boolean isElsewhere(SparkSession spark, TableSpecBase table) {
        if (table.provider().isEmpty() || "delta".equalsIgnoreCase((String) table.provider().get())) return false;
        return table.location().isEmpty() || !hasLog(spark, (String) table.location().get());
    }

    // Whether a location is a Delta table, a partition directory of one, a directory directly in one, or in its log.
    // Also false if Spark can't reach the location, because then it can't write there either.
    public boolean hasLog(SparkSession spark, String location) {
        try {
            return isInTable(spark, new Path(location));
        } catch (Exception unreachable) {
            return false;
        }
    }

    private boolean isInTable(SparkSession spark, Path path) throws java.io.IOException {
        FileSystem system = path.getFileSystem(spark.sessionState().newHadoopConf());
        for (Path at = path; at != null; at = at.getParent()) {
            if (at.getName().equals("_delta_log")) return system.exists(at);
        }
        while (path.getName().contains("=") && path.getParent() != null) path = path.getParent();
        if (system.exists(new Path(path, "_delta_log"))) return true;
        Path parent = path.getParent();
        return parent != null && isSeen(path.getName()) && system.exists(new Path(parent, "_delta_log"));
    }

    // Whether a directory inside a table belongs to it: other hidden ones don't, such as the checkpoints of a stream.
    private static boolean isSeen(String name) {
        return name.equals("_change_data") || !name.startsWith("_") && !name.startsWith(".");
    }

    // A Delta table in a directory, which an overwrite of the directory would delete; null if none is found. At most
    // `most` directories are listed; partition directories and hidden ones aren't.
    public String tableIn(SparkSession spark, String location, int most) {
        try {
            Path root = new Path(location);
            FileSystem system = root.getFileSystem(spark.sessionState().newHadoopConf());
            ArrayDeque<Path> waiting = new ArrayDeque<Path>();
            waiting.add(root);
            for (int i = 0; i < most && !waiting.isEmpty(); i++) {
                Path directory = (Path) waiting.remove();
                RemoteIterator<FileStatus> inside = system.listStatusIterator(directory);
                while (inside.hasNext()) {
                    FileStatus status = (FileStatus) inside.next();
                    String name = status.getPath().getName();
                    if (!status.isDirectory()) continue;
                    if (name.equals("_delta_log")) return directory.toString();
                    if (isSeen(name) && !name.contains("=")) waiting.add(status.getPath());
                }
            }
        } catch (Exception unreachable) {
            return null;
        }
        return null;
    }
}
