"""Rules for rows: loops in which the threads of a block walk side by side."""
