"""Processes and their children: forked, limited, ended."""
