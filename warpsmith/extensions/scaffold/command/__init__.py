"""The command `init`: from source files to a job file."""
