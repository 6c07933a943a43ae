// Elements and text. Whatever memory holds becomes text nodes here, and nothing else: there is no HTML in any string.

const TAGS = new Set(
  ("p h1 h2 h3 h4 h5 h6 ul ol li blockquote strong em del table thead tbody tr th td hr br pre code").split(" "),
);
// What reorders or hides text: it is named instead of done.
const CONTROL = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff])/;
const MARKED = /(\[REDACTED:[a-z0-9-]{1,40}\])/;

/** An element with properties, a class, listeners (on...) and children; a string child is text. */
export function make(tag, { class: name, on = {}, aria = {}, ...properties } = {}, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  Object.assign(element, properties);
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [key, value] of Object.entries(aria)) element.setAttribute(`aria-${key}`, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Text of memory as nodes: what was redacted as a grey mark, lit words as marks. */
export function shown(text, lit = null) {
  const nodes = document.createDocumentFragment();
  for (const piece of text.split(MARKED)) {
    if (MARKED.test(piece)) {
      nodes.append(make("span", { class: "redacted" }, piece.slice("[REDACTED:".length, -1)));
      continue;
    }
    for (const part of piece.split(CONTROL)) {
      if (part.length === 1 && CONTROL.test(part)) {
        const code = part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
        nodes.append(make("span", { class: "control" }, `U+${code}`));
      } else if (lit === null) {
        nodes.append(part);
      } else {
        part.split(lit).forEach((each, at) => nodes.append(at % 2 ? make("mark", {}, each) : each));
      }
    }
  }
  return nodes;
}

/** What finds the words of a question in a text; null: it has none. */
export function words(question) {
  const found = new Set();
  for (const [word] of question.matchAll(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+|[\p{L}\p{N}_]+/gu)) {
    if (/^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word)) {
      for (let at = 0; at < Math.max(word.length - 1, 1); at++) found.add(word.slice(at, at + 2));
    } else if (word.length > 2) {
      found.add(`(?<![\\p{L}\\p{N}])${word}[\\p{L}\\p{N}]{0,3}`);
    }
  }
  return found.size ? new RegExp(`(${[...found].slice(0, 50).join("|")})`, "giu") : null;
}

/** What finds the words of a text that another has not; null: it has all. */
export function lacking(text, other) {
  const parts = (one) => new Set(one.toLowerCase().match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+/gu));
  const theirs = parts(other);
  const found = [...parts(text)].filter((word) => !theirs.has(word)).slice(0, 200);
  const whole = found.map((word) => (/^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word) ? word : `(?<![\\p{L}\\p{N}_])${word}(?![\\p{L}\\p{N}_])`));
  return whole.length ? new RegExp(`(${whole.join("|")})`, "giu") : null;
}

/** The nodes of a tree that the server made of Markdown; a tag that it does not know is text. */
export function built(tree, lit = null, hit = null) {
  const nodes = document.createDocumentFragment();
  for (const node of tree) {
    if (typeof node === "string") {
      nodes.append(shown(node, lit));
      continue;
    }
    const [tag, about, ...children] = node;
    const isLink = tag === "a";
    const element = make(isLink || !TAGS.has(tag) ? "span" : tag);
    if (isLink) {
      // It leads nowhere: where it would lead is what its owner may read.
      element.className = "inert";
      element.title = about.title ?? "";
    }
    if (hit && about.from && about.from <= hit[1] && about.to >= hit[0] && !["ul", "ol", "table"].includes(tag)) {
      element.classList.add("hit");
    }
    element.append(built(children, lit, hit));
    nodes.append(element);
  }
  return nodes;
}

/** Replaces what is in a place. What has the focus there gives it to what says the same, or to the first entry. */
export function put(id, ...nodes) {
  const place = document.getElementById(id);
  const before = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...nodes);
  if (before) {
    const alike = (one) => one.tagName === before.tagName && one.id === before.id && one.textContent === before.textContent;
    ([...place.querySelectorAll("button, summary, a, input, select")].find(alike) ?? place.querySelector(".entry"))?.focus();
  }
  return place;
}

export function notice(text) {
  put("notice", text);
}
