"""Parts and bounds of an index, and the element that a thread computes."""
