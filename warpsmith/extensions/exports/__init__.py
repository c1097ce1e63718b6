"""Results in the forms that other programs build in."""
