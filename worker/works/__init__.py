"""What tasks do, a module for each kind. Results and their effects are written by `worker.task_runner`."""
