"""Input of a role: its inputs, cards, earlier results and the wording of the question."""
