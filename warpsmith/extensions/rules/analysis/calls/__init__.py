"""What a kernel calls, and what those calls may do."""
