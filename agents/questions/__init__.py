"""What a role is told: its inputs, guides, earlier results and the wording of the question."""
