"""The questions, by what they look at."""
