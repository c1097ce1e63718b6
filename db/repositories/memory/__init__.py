"""Repositories of tuning records of ended jobs."""
