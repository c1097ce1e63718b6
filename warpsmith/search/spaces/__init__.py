"""Search spaces: feasible sets, constraints over arrays, priors."""
