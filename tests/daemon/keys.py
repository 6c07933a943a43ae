"""Session keys of every kind, with {agent} where the agent's name stands."""

DIRECT = [
    None,
    "agent:{agent}:main",
    "main",
    "agent:{agent}:telegram:direct:4711",
    "agent:{agent}:whatsapp:work:dm:group",
    "agent:{agent}:cron:nightly",
    "agent:{agent}:main:subagent:3",
]
SHARED = [
    "agent:{agent}:telegram:group:-100200",
    "agent:{agent}:discord:channel:99",
    "agent:{agent}:slack:room:7",
    "agent:{agent}:telegram:group:-100200:subagent:3",
    "agent:{agent}:main:group:4",
    "agent:{agent}:TELEGRAM:GROUP:1",
]
UNKNOWN = [
    "",
    " ",
    ":",
    "agent:{agent}:",
    "agent:{agent}:hook:mail",
    "agent:{agent}:telegram",
    "agent:{agent}:telegram:direct:",
    "agent:{agent}:main:x",
    "agent:{agent}: main",
    "agent:{agent}:telegram:dire\u0441t:1",
    "Agent:{agent}:main",
    "no such shape",
    "direct",
    "x" * 5000,
    "agent:{agent}:main\0",
    "猫",
]

# One of each kind, for what is done with the answer: what a key is, is told by the tables above.
SOME_DIRECT = [None, "agent:{agent}:telegram:direct:4711", "agent:{agent}:main:subagent:3"]
SOME_OTHERS = [
    "agent:{agent}:telegram:group:-100200",
    "agent:{agent}:discord:channel:99",
    "agent:{agent}:",
    "direct",
]


def key_of(shape: str | None, agent: str) -> str | None:
    """A session key of an agent."""
    return None if shape is None else shape.replace("{agent}", agent)
