"""Read models: status, results, facts and charts, put together from the tables."""
