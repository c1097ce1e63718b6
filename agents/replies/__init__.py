"""Acceptance of replies: parsed, checked against the template and the job, or refused with a reason."""
