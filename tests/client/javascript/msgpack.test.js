// MessagePack: the bytes of its specification, at each border between two forms.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode } from "../../../client/javascript/msgpack.js";

const DEEP = 500;
const written = [
  [null, "c0"], [false, "c2"], [true, "c3"],
  [0, "00"], [127, "7f"], [128, "ce00000080"], [2 ** 32 - 1, "ceffffffff"], [2 ** 32, "cf0000000100000000"],
  [-1, "ff"], [-32, "e0"], [-33, "d3ffffffffffffffdf"], [Number.MAX_SAFE_INTEGER, "cf001fffffffffffff"],
  [0.5, "cb3fe0000000000000"], [-0, "cb8000000000000000"], [2 ** 60, "cb43b0000000000000"],
  ["", "a0"], ["é", "a2c3a9"], ["x".repeat(31), `bf${"78".repeat(31)}`], ["x".repeat(32), `d920${"78".repeat(32)}`],
  ["x".repeat(256), `da0100${"78".repeat(256)}`], ["x".repeat(65536), `db00010000${"78".repeat(65536)}`],
  [[], "90"], [Array(15).fill(1), `9f${"01".repeat(15)}`], [Array(16).fill(1), `dc0010${"01".repeat(16)}`],
  [Array(65536).fill(1), `dd00010000${"01".repeat(65536)}`],
  [{}, "80"], [{ a: [1, { b: null }] }, "81a1619201" + "81a162c0"],
];

for (const [value, hex] of written) {
  test(`${JSON.stringify(value).slice(0, 40)} is written as ${hex.slice(0, 18)}, and read again`, () => {
    assert.equal(encode(value, DEEP).toString("hex"), hex);
    assert.deepEqual(decode(Buffer.from(hex, "hex"), DEEP), value);
  });
}

test("forms that only others write are read, too", () => {
  const read = (hex) => decode(Buffer.from(hex, "hex"), DEEP);
  assert.deepEqual(["cc80", "cd0100", "d080", "d1ff00", "d2ffff0000", "ca3f000000"].map(read), [128, 256, -128, -256, -65536, 0.5]);
  assert.deepEqual([read("df00000001a16101"), read("de0001a16101")], [{ a: 1 }, { a: 1 }]);
});

test("a map of sixteen members, and members that are undefined", () => {
  const names = Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`k${at}`, at]));
  const bytes = encode(names, DEEP);
  assert.equal(bytes.toString("hex", 0, 3), "de0010");
  assert.deepEqual(decode(bytes, DEEP), names);
  assert.equal(encode({ a: undefined, b: 1 }, DEEP).toString("hex"), "81a16201");
});

test("half a character is none", () => assert.equal(decode(encode("a\ud800b", DEEP), DEEP), "a\ufffdb"));

test("what has no place in a message is refused", () => {
  for (const value of [() => 1, Symbol("x"), 1n, new Map(), new Date()]) assert.throws(() => encode(value, DEEP), TypeError);
});

test("nothing is read past the end, and nothing may be left", () => {
  const whole = encode({ list: ["text", 300, 2 ** 40, 0.5, -1], map: { a: "x".repeat(40) } }, DEEP);
  for (let length = 0; length < whole.length; length += 1) assert.throws(() => decode(whole.subarray(0, length), DEEP), RangeError);
  assert.throws(() => decode(Buffer.concat([whole, Buffer.of(0)]), DEEP), RangeError);
  // A length that is made up takes no memory.
  for (const hex of ["ddffffffff", "dfffffffff", "dbffffffff"]) assert.throws(() => decode(Buffer.from(hex, "hex"), DEEP), RangeError);
});

test("keys that are no names, and kinds that no message has, are refused", () => {
  for (const hex of ["810101", "c40100", "c7010000", "d40000", "c1", `81a9${Buffer.from("__proto__").toString("hex")}80`]) {
    assert.throws(() => decode(Buffer.from(hex, "hex"), DEEP), TypeError);
  }
});

test("what is nested too deeply is neither written nor read", () => {
  const nested = (levels) => Buffer.from([...Array(levels).fill(0x91), 0xc0]);
  assert.throws(() => decode(nested(DEEP + 1), DEEP), TypeError);
  const deep = decode(nested(DEEP), DEEP);
  assert.deepEqual(encode(deep, DEEP), nested(DEEP));
  assert.throws(() => encode([deep], DEEP), TypeError);
});
