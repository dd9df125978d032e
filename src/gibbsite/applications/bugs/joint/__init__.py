"""Parts of the derivation of updates that concern several unknowns."""
