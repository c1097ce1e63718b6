"""Winners: finalists, their verification against the baseline, and the few that cover all workloads."""
