"""The environment script, and the same variables for a child process."""
