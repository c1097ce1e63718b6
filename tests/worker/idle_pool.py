"""A pool that does nothing, until it is told to end."""

import time

if __name__ == "__main__":
    time.sleep(60)
