"""Commands on exports, and the proof of a gain in a program of the user."""
