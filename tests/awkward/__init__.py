"""Inputs that are nearly right, as strategies of Hypothesis: what programs write when they change, crash or lie."""
