"""Exports of tuning tables that engines read."""
