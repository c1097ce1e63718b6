"""Rules that tell the compiler more, or let it assume more; the work of each thread stays."""
