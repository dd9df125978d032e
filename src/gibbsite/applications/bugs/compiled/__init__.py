"""Compiled code of models in the BUGS language: instructions, densities and updates."""
