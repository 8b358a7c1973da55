import java.io.IOException;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files, whose permissions are set here and not by a `chmod` process for each file and folder. */
public class LocalFiles extends RawLocalFileSystem {
    private static final int PLAIN = 0777;

    /** These files with checksums, as Hadoop has its own: what a setting may name. */
    public static class Checked extends LocalFileSystem {
        public Checked() {
            super(new LocalFiles());
        }
    }

    public void setPermission(Path path, FsPermission permission) throws IOException {
        if (permission.toShort() > PLAIN) {
            super.setPermission(path, permission); // a sticky bit, which Java cannot set
        } else {
            String plain = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(plain));
        }
    }

    /** From now on, whoever in this JVM asks Hadoop for local files is given these, with checksums as before. */
    public void use(Configuration settings) throws Exception {
        URI files = URI.create("file:///");
        LocalFileSystem checked = new LocalFileSystem(this);
        checked.initialize(files, settings);
        Method remember = FileSystem.class.getDeclaredMethod(
            "addFileSystemForTesting", new Class[] {URI.class, Configuration.class, FileSystem.class});
        remember.setAccessible(true);
        remember.invoke(null, new Object[] {files, settings, checked});
    }
}
