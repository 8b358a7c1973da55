import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** Hadoop's settings without those that nobody here asks for: Spark copies and sends all of them for each job. */
public class FewerSettings {
    private static final String[] KEPT_IN = {"properties", "updatingResource"}; // the value, and where it comes from

    /** Leave out every setting whose name begins so. */
    public void leaveOut(Configuration settings, String beginning) throws Exception {
        settings.size(); // they are read when first asked for
        for (int place = 0; place < KEPT_IN.length; place++) {
            Field field = Configuration.class.getDeclaredField(KEPT_IN[place]);
            field.setAccessible(true);
            Iterator names = ((Map) field.get(settings)).keySet().iterator();
            while (names.hasNext()) {
                if (((String) names.next()).startsWith(beginning)) {
                    names.remove();
                }
            }
        }
    }
}
