"""Workers: the Celery application, its tasks, the maintenance loop (relay, sweeper, heartbeat)."""
