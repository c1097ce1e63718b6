"""Work of the tasks, a module for each kind. Results and effects are written by `worker.task_runner`."""
