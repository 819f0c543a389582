"""What an index and a wheel tell before the download."""
