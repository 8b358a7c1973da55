"""Files the program needs at run time: icons, themes, schemas, help, settings for Spark."""
