"""Tools that agents use on a device before they answer: compile, check, time, profile."""
