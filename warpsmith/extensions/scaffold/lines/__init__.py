"""The lines of a job file: arguments, symbols, the launch, the reference."""
