"""The version of the daemon: the one place where it stands."""

VERSION = "0.1.0"
