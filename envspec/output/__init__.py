"""The output directory: generations, manifest, lock, and the one switch."""
