package tablelog;

import java.net.URI;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;

// Names the kinds of the statements in a text by one call from Python: most texts are not about Delta tables.
public class StatementKinds {
    // The names of the plans' classes, without WITH clauses, separated by spaces; null if Spark can't parse the text. An
    // INSERT into a table of another format is "InsertElsewhere".
    public String of(SparkSession spark, String text) {
        LogicalPlan plan;
        try {
            plan = spark.sessionState().sqlParser().parsePlan(text);
        } catch (Exception refused) {
            return null;
        }
        return kinds(spark, plan);
    }

    private static String kinds(SparkSession spark, LogicalPlan plan) {
        if (plan instanceof InsertIntoStatement && isElsewhere(spark, ((InsertIntoStatement) plan).table())) {
            return "InsertElsewhere";
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
    private static boolean isElsewhere(SparkSession spark, LogicalPlan relation) {
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
            Path log = new Path(new Path((URI) entry.storage().locationUri().get()), "_delta_log");
            return !log.getFileSystem(spark.sessionState().newHadoopConf()).exists(log);
        } catch (Exception unknown) {
            return false; // Python finds out
        }
    }
}
