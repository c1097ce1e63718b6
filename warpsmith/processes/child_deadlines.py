"""Deadlines of children, as a worker waits for them and as a step's longest silence is reckoned from them."""

START_S = 60.0
"""Deadline of the start of a child."""
REFERENCE_S = 120.0
"""Deadline of one case of a job's NumPy reference."""
WATCHED_RATIO = 3.0
"""Deadlines under a sanitizer or profiler as a multiple of those without."""
