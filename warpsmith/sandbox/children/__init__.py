"""Programs of the child processes: compile, run on the device, evaluate the reference."""
