"""Files of other tools, read as facts for a job file."""
