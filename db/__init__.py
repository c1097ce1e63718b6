"""The database: tables, repositories, leases, outbox, migrations."""
