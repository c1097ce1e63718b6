"""Tasks between processes: the broker, its file transport, leases, the sink of trials."""
