"""Memory of a kernel's arguments in a child: buffers, guard zones, poisons, references."""
