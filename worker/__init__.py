"""Workers: the Celery application, its tasks, the steward (relay, sweeper, heartbeat)."""
