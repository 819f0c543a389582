"""The resolver's second half: can a locked set work? Rules over facts, before anything large is downloaded."""
