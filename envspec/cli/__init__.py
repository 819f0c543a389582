"""The command line: one module a verb; the only room that knows click, a terminal and exit codes."""
