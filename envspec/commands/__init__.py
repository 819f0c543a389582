"""One module a verb whose work is more than one call."""
