"""Embedding by jobs that a provider does when it finds the time: cheaper, slower, and for many texts at once."""
