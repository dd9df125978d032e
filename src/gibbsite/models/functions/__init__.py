"""Factors that are functions of the values of their sites."""
