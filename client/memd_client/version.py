"""The version of this distribution; to read it from the installed metadata takes longer than the import."""

__version__ = "0.1.0"
