"""Input of a role: its inputs, guides, earlier results and the wording of the question."""
