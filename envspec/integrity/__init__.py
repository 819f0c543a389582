"""Has an environment drifted from its manifest, and back again."""
