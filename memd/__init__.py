"""The daemon of memd."""

VERSION = "0.1.0"
