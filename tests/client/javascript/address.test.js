import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { checkOwner } from "../../../client/javascript/address.js";
import { DaemonNotRunning, defaultSocket } from "../../../client/javascript/index.js";

const HOME = "/home/ada";

for (const [environ, platform, expected] of [
  [{ MEMD_SOCKET: "/x/s", XDG_RUNTIME_DIR: "/run/1" }, "linux", "/x/s"],
  [{ MEMD_SOCKET: "~/s" }, "linux", `${HOME}/s`],
  [{ MEMD_SOCKET: "", XDG_RUNTIME_DIR: "/run/1" }, "linux", "/run/1/memd/memd.sock"],
  [{ XDG_RUNTIME_DIR: "run", MEMD_STATE_DIR: "/state" }, "linux", "/state/memd.sock"],
  [{ XDG_STATE_HOME: "/xdg" }, "linux", "/xdg/memd/memd.sock"],
  [{}, "linux", `${HOME}/.local/state/memd/memd.sock`],
  [{ XDG_RUNTIME_DIR: "/run/1" }, "darwin", `${HOME}/Library/Application Support/memd/memd.sock`],
]) {
  test(`the socket for ${JSON.stringify(environ)} on ${platform}`, () => {
    assert.equal(defaultSocket(environ, platform, HOME), expected);
  });
}

async function listening(act) {
  const directory = await mkdtemp(join(tmpdir(), "memd-"));
  const path = join(directory, "s");
  const server = createServer();
  await new Promise((resolve) => server.listen(path, resolve));
  try {
    await act(path, directory);
  } finally {
    server.close();
    await rm(directory, { recursive: true });
  }
}

test("a socket in a directory of one's own is taken", () => listening((path) => checkOwner(path)));

test("a directory that others may write to is refused", () =>
  listening(async (path, directory) => {
    await chmod(directory, 0o777);
    await assert.rejects(checkOwner(path), (error) => error instanceof DaemonNotRunning && /other users/.test(error.reason));
  }));

test("a path that is too long or holds a NUL is named", async () => {
  await assert.rejects(checkOwner(`/tmp/${"x".repeat(200)}`), /205 bytes, 10[37] are possible/);
  await assert.rejects(checkOwner("/tmp/a\0b"), /NUL/);
});

test("a missing socket, and a link to nothing, are told", async () => {
  await assert.rejects(checkOwner("/tmp/memd-nothing/s"), /no such socket/);
  await listening(async (path, directory) => {
    const link = join(directory, "link");
    await symlink("/tmp/memd-nothing", link);
    await assert.rejects(checkOwner(join(link, "s")), /no such socket/);
  });
});
