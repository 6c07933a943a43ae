"""Tells whether words joined by signs are a password: "waffle_ember745", "falcon-zephyr-ginger", and no name in a program."""

import re

from memd.redact.values import secret_values
from memd.redact.words.secret_words import SECRET_WORDS

_SEPARATOR = re.compile("[-._ ]")
_NUMBERED = re.compile(r"[a-z]{3,12}(?:[-._][a-z]{3,12}){1,4}[-._]?[0-9]{2,4}[!?#*]?")
_NAMES_OF_THINGS = frozenset((
    "access", "account", "admin", "android", "api", "app", "apps", "area", "attempt", "auth", "back", "backup", "bank", "base",
    "branch", "browser", "build", "bug", "bytes", "cache", "call", "camera", "card", "case", "cell", "chain", "channel",
    "chapter", "chart", "check", "class", "click", "client", "clip", "cloud", "code", "col", "column", "commit", "config",
    "container", "control", "core", "count", "course", "cross", "data", "database", "date", "day", "debug", "default", "demo",
    "deploy", "dev", "device", "disk", "display", "doc", "docker", "domain", "door", "drag", "draft", "drive", "drop", "edge",
    "email", "end", "entry", "env", "error", "event", "example", "exam", "exp", "export", "face", "factor", "feature", "field",
    "file", "final", "fingerprint", "fix", "fixture", "flag", "flow", "fold", "folder", "form", "frame", "front", "full",
    "func", "game", "gate", "gen", "group", "guest", "hand", "hash", "high", "home", "hook", "host", "house", "http", "image",
    "img", "import", "index", "info", "input", "instance", "ios", "issue", "item", "job", "json", "kernel", "kind", "lab",
    "label", "last", "layer", "left", "lesson", "lib", "library", "light", "line", "link", "linux", "list", "load", "local",
    "lock", "log", "login", "loop", "low", "mac", "machine", "main", "map", "mark", "master", "max", "mean", "meeting", "menu",
    "min", "mobile", "mode", "model", "module", "monitor", "mouse", "multi", "name", "net", "network", "node", "note", "num",
    "object", "old", "one", "open", "order", "out", "output", "page", "panel", "paper", "param", "part", "patch", "path",
    "phase", "phone", "photo", "pic", "pipeline", "plan", "plugin", "point", "pool", "port", "post", "prod", "product",
    "profile", "project", "proxy", "public", "pull", "push", "query", "queue", "quiz", "read", "real", "record", "ref",
    "region", "release", "remote", "repo", "report", "request", "res", "result", "right", "role", "room", "root", "round",
    "router", "row", "rule", "run", "safe", "sample", "scan", "scene", "schema", "screen", "script", "sec", "section", "seed",
    "self", "sensor", "serial", "series", "server", "service", "session", "set", "sheet", "shot", "sign", "single", "site",
    "size", "slide", "slot", "snap", "source", "spec", "sprint", "ssh", "stage", "staging", "start", "state", "step", "stop",
    "storage", "store", "stream", "student", "style", "sub", "super", "support", "survey", "switch", "sync", "system", "tab",
    "table", "tag", "target", "task", "team", "temp", "test", "text", "thread", "ticket", "tier", "time", "tmp", "token",
    "tool", "topic", "total", "touch", "track", "train", "tree", "trial", "trunk", "two", "type", "unit", "update", "upload",
    "url", "user", "users", "value", "vector", "ver", "version", "video", "view", "vol", "volume", "web", "week", "wide",
    "wire", "work", "worker", "write", "year", "yaml", "zone",
))  # fmt: skip
"""Words that names of things in programs, of files and of places are made of."""


def is_made_of_words(said: str) -> bool:
    """Return whether joined words are those of a password: few of them are adjectives, and none speaks of programs or of passwords."""
    parts = [part for part in _SEPARATOR.split(said.lower().rstrip("0123456789!?#*-._ ")) if part]
    words = frozenset(parts)
    return (
        words.isdisjoint(_NAMES_OF_THINGS)
        and words.isdisjoint(secret_values.HARMLESS_WORDS)
        and words.isdisjoint(SECRET_WORDS.plain.function_words)
        and 2 * sum(len(word) > 3 and secret_values.is_participle(word) for word in words) < len(parts)
    )


_CAPITAL = re.compile(
    r"(?:[A-Z][a-z]{2,12}(?:[-._][A-Za-z][a-z]{2,12}){1,4}|[a-z]{3,12}(?:[-._][A-Z][a-z]{2,12}){1,4})[-._]?[0-9]{1,4}[!?#*]?"
)


# A digit stands for a letter: "Pl4stic.Fork".
_WITH_DIGIT_WITHIN = re.compile(
    r"(?=[A-Za-z]{1,9}[0-9][a-z]|[A-Za-z]{3,12}[-._][A-Z][a-z]{0,8}[0-9][a-z])[A-Z][a-z0-9]{2,12}(?:[-._][A-Z][a-z0-9]{2,12}){1,3}[!?#*]?"
)


def is_worded_in_any_case(said: str) -> bool:
    """Return the same where words may begin with a capital, for places that speak of a login."""
    is_one = any(form.fullmatch(said) is not None for form in (_NUMBERED, _CAPITAL, _WITH_DIGIT_WITHIN))
    return is_one and is_made_of_words(said)


def is_worded(said: str) -> bool:
    """Return whether a text is two words or more with signs between and a number behind, as passwords are."""
    return _NUMBERED.fullmatch(said) is not None and is_made_of_words(said)
