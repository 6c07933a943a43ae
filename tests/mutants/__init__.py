"""Faults put into the product on purpose, to see whether its tests notice."""
