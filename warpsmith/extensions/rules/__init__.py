"""Rewrite rules: from a kernel in C text to a template, each rule with a proved precondition."""
