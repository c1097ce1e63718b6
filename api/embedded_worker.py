"""The worker of the embedded mode: a child of the API, restarted when it ends, stopped with it."""

import logging
import os
import subprocess
import threading

from warpsmith import applications

STOP_S = 20.0
RESTART_S = 1.0

log = logging.getLogger(__name__)


class EmbeddedWorker:
    """Keeps `python -m worker.main` running. The child watches its parent as well."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="embedded-worker", daemon=True)

    def start(self) -> None:
        """Start the child and the thread that supervises it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the child; it gives back its task."""
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        # The kernel ties the child to this thread, so this thread starts the child and outlives it.
        while not self._stop.is_set():
            self._child = subprocess.Popen(
                applications.command("worker.main"),
                env=applications.environment(os.environ),
                stdin=subprocess.DEVNULL,
            )
            while not self._stop.wait(0.1) and self._child.poll() is None:
                pass
            if not self._stop.is_set():
                log.error("the worker ended with status %s; starting it again", self._child.returncode)
                self._stop.wait(RESTART_S)
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
