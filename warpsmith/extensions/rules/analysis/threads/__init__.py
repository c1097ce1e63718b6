"""What a thread and a block of a kernel take: indices, teams, places."""
