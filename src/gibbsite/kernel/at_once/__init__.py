"""Updates of many sites, or of many chains, at once."""
