"""Draws without bias by coupling from the past: bounds of pairs (:mod:`.pairs`), sets (:mod:`.sets`)."""
