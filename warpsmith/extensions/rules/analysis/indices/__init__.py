"""What an index is made of, what bounds it, and the element that a thread computes."""
