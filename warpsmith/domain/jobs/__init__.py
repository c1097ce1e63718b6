"""Jobs, their plans and what they need: memory, sizes of launches, arguments by value."""
