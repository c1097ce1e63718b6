"""Files, locks, logs and other small services of the operating system."""
