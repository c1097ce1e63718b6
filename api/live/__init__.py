"""State that long polls and streams share: the broadcaster of events and one poll for all who wait."""
