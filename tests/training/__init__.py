"""Training of the bundled model on questions about notes; see __main__.py."""
