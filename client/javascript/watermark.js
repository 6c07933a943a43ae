// Watermarks texts that memd hands out, so that they are not indexed again from a transcript, as memd_client/watermark.py does.

import { blake2b } from "./blake2b.js";

const DIGEST_BYTES = 8;
// What Python takes for a blank: \s has one more, and lacks some.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** The text as a marked block; `kind` is recall, workspace or flush. */
export function marked(text, kind = "recall") {
  const inside = text
    .replace(/(memd-(?:recall|workspace|flush) )(?=[0-9a-f]{16})/g, "$1 ")
    .replace(/(<\/?)(?=memd-(?:recall|workspace|flush))/g, "$1 ");
  const name = `memd-${kind} ${digest([inside])}`;
  return `<${name}>\n${inside}\n</${name}>`;
}

/** The reply of a tool, an object that JSON can carry, with its mark. */
export function markedReply(reply) {
  return { _memd: digest(texts(reply)), ...reply };
}

function* texts(value) {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) for (const each of value) yield* texts(each);
  else if (value !== null && typeof value === "object") {
    for (const key of Object.keys(value).sort()) {
      if (value[key] === undefined) continue;
      yield key;
      yield* texts(value[key]);
    }
  }
}

function digest(parts) {
  const squeezed = [...parts].map((part) => part.replace(BLANKS, "")).join("");
  return blake2b(squeezed, DIGEST_BYTES, "memd");
}
