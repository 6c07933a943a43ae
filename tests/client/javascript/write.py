"""Writes the messages of the Node client from the tables of client/PROTOCOL.md: `python -m tests.client.javascript.write`."""

import json
import re
from pathlib import Path

import msgspec

PACKAGE = Path(__file__).parents[3] / "client" / "javascript"
PAGE = PACKAGE.parent / "PROTOCOL.md"
_SCALARS = {"str": "string", "int": "number", "float": "number", "bool": "boolean", "nil": "null"}
_HEAD = "// Written from ../PROTOCOL.md: do not edit.\n"


class Field(msgspec.Struct, frozen=True):
    """A row of a table."""

    name: str
    type: str  # as the page has it
    default: str  # as the page has it: required, nil, empty, ok or a value
    meaning: str

    @property
    def is_required(self) -> bool:
        """Whether a message is none without it."""
        return self.default == "required"


class Table(msgspec.Struct, frozen=True):
    """A message, or a part of messages."""

    name: str
    section: str  # Requests, Answers ...
    fields: tuple[Field, ...]


def tables(page: str) -> list[Table]:
    """All tables of fields; requests without one, too."""
    found, section, name = [], "", ""
    for part in re.split(r"^(?=#)", page, flags=re.MULTILINE):
        heading = re.match(r"(#+) (.*)\n", part)
        if heading is None:
            continue
        if heading[1] == "##":
            section = heading[2]
        name = heading[2].strip("`")
        rows = re.search(r"^\| field \| type .*\n\|---.*\n((?:\|.*\n)*)", part, flags=re.MULTILINE)
        if rows is not None:
            found.append(Table(name, section, tuple(_field(row) for row in rows[1].splitlines())))
    return found


def _field(row: str) -> Field:
    name, kind, default, meaning = (cell.strip() for cell in row.strip("|").split("|", 3))
    return Field(name.strip("`"), kind, default, meaning.strip("| "))


def script(page: str) -> str:
    """The module messages.js."""
    parts, requests = {}, {}
    for table in tables(page):
        if table.section == "Requests":
            requests[table.name] = [field.name for field in table.fields]
        else:
            parts[table.name] = _shape(table)
    protocol = re.search(r"This is protocol \*\*(\d+)\*\*", page)
    assert protocol
    return "\n".join(
        [
            _HEAD,
            f"export const PROTOCOL = {protocol[1]};\n",
            "// The fields of each request.",
            f"export const REQUESTS = {json.dumps(requests, indent=2)};\n",
            '// Of each message and part: the defaults of its fields, and which hold other parts: "one", a "list" or a "map" of them.',
            f"const PARTS = {json.dumps(parts, indent=2)};\n",
            _COMPLETE,
        ]
    )


_COMPLETE = """/** The message with the defaults of the fields that it lacks, in all its parts. Fields that are not known stay. */
export function complete(name, message) {
  const { defaults, holds } = PARTS[name];
  const whole = { ...structuredClone(defaults), ...message };
  for (const [field, [how, part]] of Object.entries(holds)) {
    const value = whole[field];
    if (value === null || value === undefined) continue;
    if (how === "one") whole[field] = complete(part, value);
    else if (how === "list") whole[field] = value.map((each) => complete(part, each));
    else whole[field] = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, complete(part, each)]));
  }
  return whole;
}
"""


def _shape(table: Table) -> dict[str, object]:
    defaults = {field.name: _value(field) for field in table.fields if not field.is_required}
    held = {field.name: holding for field in table.fields if (holding := _holding(field.type)) is not None}
    return {"defaults": defaults, "holds": held}


def _value(field: Field) -> object:
    match field.default:
        case "nil":
            return None
        case "ok":
            return {}
        case "empty":
            return {} if field.type.startswith("map") else []
        case written:
            return json.loads(written)


def _holding(kind: str) -> tuple[str, str] | None:
    """How a field holds other parts, and which."""
    found = re.fullmatch(r"(?:(list) of |(map) of str to )?([A-Z]\w+)(?:, nil)?", kind)
    if found is None:
        return None
    return found[1] or found[2] or "one", "found" if found[3] == "Found" else found[3]


def types(page: str) -> str:
    """The declarations of messages.js."""
    lines = [_HEAD, "export const PROTOCOL: number;"]
    for table in tables(page):
        if table.name == "hello":
            continue
        is_request = table.section == "Requests"
        name = table.name[0].upper() + table.name[1:].replace("report", "Report").replace("list", "List")
        name += "Request" if is_request else ""
        lines += ["", f"export interface {name} {{"]
        for field in table.fields:
            if field.meaning:
                lines.append(f"  /** {field.meaning} */")
            mark = "?" if is_request and not field.is_required else ""
            kind = "string | Date | null" if field.name == "now" else _type(field.type)
            lines.append(f"  {field.name}{mark}: {kind};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _type(kind: str) -> str:
    """A type of the page in TypeScript; several, divided by commas, are a union."""
    return " | ".join(_single(piece.strip()) for piece in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", kind))


def _single(kind: str) -> str:
    if kind.startswith("["):
        return f"[{', '.join(_single(each) for each in kind[1:-1].split(', '))}]"
    if found := re.fullmatch(r"list of (.+)", kind):
        return f"{_single(found[1])}[]"
    if found := re.fullmatch(r"map of str to (.+)", kind):
        return f"Record<string, {_single(found[1])}>"
    return _SCALARS.get(kind, kind)


def main() -> None:
    """Write both files."""
    page = PAGE.read_text(encoding="utf-8")
    (PACKAGE / "messages.js").write_text(script(page), encoding="utf-8")
    (PACKAGE / "messages.d.ts").write_text(types(page), encoding="utf-8")


if __name__ == "__main__":
    main()
