"""Files from outside: what is checked before any other part of gibbsite sees them."""
