"""Commands on the database: keys, workers, reachability, the version of the program."""
