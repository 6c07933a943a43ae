"""Embedding providers that are asked over HTTP."""
