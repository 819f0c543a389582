"""Facts about this machine, each read in one place."""
