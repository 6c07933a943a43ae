// The frames that versions of memd have sent, and the request frames byte for byte.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { frame, FrameReader } from "../../../client/javascript/connection.js";
import { complete, REQUESTS } from "../../../client/javascript/messages.js";

const DIRECTORY = process.env.MEMD_GOLDEN ?? new URL("../golden/", import.meta.url).pathname;
const files = readdirSync(DIRECTORY).filter((name) => name.endsWith(".jsonl"));
const lines = files.flatMap((name) =>
  readFileSync(`${DIRECTORY}/${name}`, "utf8").trim().split("\n").map((line) => JSON.parse(line)),
);

test("there are frames of every request", () => {
  const sent = new Set(lines.filter(({ way }) => way === "request").map(({ means }) => means[1].type));
  assert.deepEqual(sent, new Set(Object.keys(REQUESTS)));
});

for (const [number, { way, frame: hex, means }] of lines.entries()) {
  const name = `${way} ${number} ${Array.isArray(means) ? means[1].type : ""}`;
  test(`${name} is read, in one piece and byte by byte`, () => {
    const bytes = Buffer.from(hex, "hex");
    for (const step of [bytes.length, 1]) {
      const reader = new FrameReader();
      const read = [];
      for (let at = 0; at < bytes.length; at += step) {
        reader.feed(bytes.subarray(at, at + step));
        for (let next; (next = reader.next()) !== undefined; ) read.push(next.value);
      }
      assert.deepEqual(read, [means]);
      assert.equal(reader.isMidway, false);
    }
  });
  if (way === "request") {
    test(`${name} is written so that the daemon reads the same`, () => {
      const reader = new FrameReader();
      reader.feed(frame(means));
      assert.deepEqual(reader.next().value, means);
      for (const field of Object.keys(means[1])) assert.ok(field === "type" || REQUESTS[means[1].type].includes(field));
    });
  }
  if (way === "reply") {
    test(`${name} keeps what was said, and gets its defaults`, () => {
      const whole = complete(means[1].type, means[1]);
      for (const field of Object.keys(means[1])) assert.ok(field in whole);
      assert.deepEqual(complete(means[1].type, whole), whole);
    });
  }
}
