"""What the pages and the streams cost: memory of the API, statements, seconds of a browser, bytes."""
