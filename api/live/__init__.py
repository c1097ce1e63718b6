"""State that long polls and streams share: the hub of watched jobs and one poll for all who wait."""
