// MessagePack, as far as the protocol has it: nil, booleans, numbers, text, lists and maps whose keys are text.

const FIXED = { mapAt: 0x80, listAt: 0x90, textAt: 0xa0, nil: 0xc0, negativeAt: 0xe0 };
const FEW = 16; // items that a short list or map has less than
const SHORT = 32; // bytes that a short text has less than

/** The bytes of a value. What is undefined in a list is nil, and in an object left out. Throws TypeError for what cannot be written. */
export function encode(value, deepest) {
  const pieces = [];
  write(value, pieces, deepest);
  return Buffer.concat(pieces);
}

function write(value, pieces, depth) {
  if (depth < 0) throw new TypeError("the value is nested too deeply");
  if (value === null || value === undefined) pieces.push(Buffer.of(FIXED.nil));
  else if (typeof value === "boolean") pieces.push(Buffer.of(value ? 0xc3 : 0xc2));
  else if (typeof value === "number") pieces.push(number(value));
  else if (typeof value === "string") writeText(value, pieces);
  else if (Array.isArray(value)) {
    pieces.push(head(value.length, FIXED.listAt, FEW, [0, 0xdc, 0xdd]));
    for (const each of value) write(each, pieces, depth - 1);
  } else if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const members = Object.entries(value).filter(([, each]) => each !== undefined);
    pieces.push(head(members.length, FIXED.mapAt, FEW, [0, 0xde, 0xdf]));
    for (const [key, each] of members) {
      writeText(key, pieces);
      write(each, pieces, depth - 1);
    }
  } else throw new TypeError(`${Object.prototype.toString.call(value)} has no place in a message`);
}

/** A half of a surrogate pair becomes U+FFFD. */
function writeText(text, pieces) {
  const bytes = Buffer.from(text);
  pieces.push(head(bytes.length, FIXED.textAt, SHORT, [0xd9, 0xda, 0xdb]), bytes);
}

/** What stands before so many bytes or items: one byte where they are few, else a byte and a length of 1, 2 or 4 bytes. */
function head(length, fixedAt, few, [one, two, four]) {
  if (length < few) return Buffer.of(fixedAt + length);
  if (one && length < 2 ** 8) return Buffer.of(one, length);
  const wide = length >= 2 ** 16;
  const bytes = Buffer.alloc(wide ? 5 : 3, wide ? four : two);
  if (wide) bytes.writeUInt32BE(length, 1);
  else bytes.writeUInt16BE(length, 1);
  return bytes;
}

function number(value) {
  if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
    const bytes = Buffer.alloc(9, 0xcb);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (value >= -32 && value < 128) return Buffer.of(value & 0xff);
  if (value >= 0 && value < 2 ** 32) {
    const bytes = Buffer.alloc(5, 0xce);
    bytes.writeUInt32BE(value, 1);
    return bytes;
  }
  const bytes = Buffer.alloc(9, value < 0 ? 0xd3 : 0xcf);
  bytes.writeBigInt64BE(BigInt(value), 1);
  return bytes;
}

/** The value of all these bytes. Throws RangeError where they end too early, and TypeError for what is no such value. */
export function decode(bytes, deepest) {
  const reader = new Reader(bytes);
  const value = reader.value(deepest);
  if (reader.at !== bytes.length) throw new RangeError(`${bytes.length - reader.at} bytes too many`);
  return value;
}

class Reader {
  #bytes;
  at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  value(depth) {
    if (depth < 0) throw new TypeError("the value is nested too deeply");
    const kind = this.#bytes.readUInt8(this.#past(1));
    if (kind < FIXED.mapAt) return kind;
    if (kind < FIXED.listAt) return this.#map(kind - FIXED.mapAt, depth);
    if (kind < FIXED.textAt) return this.#list(kind - FIXED.listAt, depth);
    if (kind < FIXED.nil) return this.#text(kind - FIXED.textAt);
    if (kind >= FIXED.negativeAt) return kind - 0x100;
    switch (kind) {
      case FIXED.nil: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xca: return this.#bytes.readFloatBE(this.#past(4));
      case 0xcb: return this.#bytes.readDoubleBE(this.#past(8));
      case 0xcc: case 0xcd: case 0xce: return this.#unsigned(1 << (kind - 0xcc));
      case 0xcf: return Number(this.#bytes.readBigUInt64BE(this.#past(8)));
      case 0xd0: return this.#bytes.readInt8(this.#past(1));
      case 0xd1: return this.#bytes.readInt16BE(this.#past(2));
      case 0xd2: return this.#bytes.readInt32BE(this.#past(4));
      case 0xd3: return Number(this.#bytes.readBigInt64BE(this.#past(8)));
      case 0xd9: case 0xda: case 0xdb: return this.#text(this.#unsigned(1 << (kind - 0xd9)));
      case 0xdc: case 0xdd: return this.#list(this.#unsigned(2 << (kind - 0xdc)), depth);
      case 0xde: case 0xdf: return this.#map(this.#unsigned(2 << (kind - 0xde)), depth);
      default: throw new TypeError(`a value of the kind 0x${kind.toString(16)}`);
    }
  }

  /** Where so many bytes begin, which are read then. */
  #past(length) {
    const begin = this.at;
    this.at += length;
    return begin;
  }

  #unsigned(width) {
    return this.#bytes.readUIntBE(this.#past(width), width);
  }

  #text(length) {
    const begin = this.#past(length);
    if (this.at > this.#bytes.length) throw new RangeError("a text that goes on past the end");
    return this.#bytes.toString("utf8", begin, this.at);
  }

  #list(length, depth) {
    const list = []; // a length that is made up must not take memory
    while (list.length < length) list.push(this.value(depth - 1));
    return list;
  }

  #map(length, depth) {
    const map = {};
    for (let left = length; left > 0; left -= 1) {
      const key = this.value(depth - 1);
      if (typeof key !== "string" || key === "__proto__") throw new TypeError("a key that no message has");
      map[key] = this.value(depth - 1);
    }
    return map;
  }
}
