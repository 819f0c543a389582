"""Integrity: what differs from the manifest of a generation, and putting it back."""
