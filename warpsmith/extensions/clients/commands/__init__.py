"""Commands that talk to a service, embedded or remote."""
