"""A session: one job on one device, its expected outputs, and the check of a launch's outputs."""
