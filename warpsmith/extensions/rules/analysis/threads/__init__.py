"""Work of a thread and of a block of a kernel: indices, teams, places."""
