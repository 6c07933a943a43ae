// Where the daemon listens, and whether it is the daemon of this user.

import { lstat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

import { DaemonNotRunning } from "./errors.js";

const OWN_PLACE =
  "Set MEMD_SOCKET to a path in a directory that only you may write to, for the daemon and its clients.";
const ROOT = 0;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/** The socket's path, from the environment and the platform alone. */
export function defaultSocket(environ = process.env, platform = process.platform, home = homedir()) {
  const named = (variable) => {
    const value = environ[variable];
    if (!value) return null;
    return value === "~" || value.startsWith("~/") ? join(home, value.slice(1)) : value;
  };
  const absolute = (variable) => {
    const path = named(variable);
    return path !== null && isAbsolute(path) ? path : null;
  };
  const socket = named("MEMD_SOCKET");
  if (socket !== null) return socket;
  const runtime = platform === "darwin" ? null : absolute("XDG_RUNTIME_DIR");
  if (runtime !== null) return join(runtime, "memd", "memd.sock");
  const base =
    platform === "darwin"
      ? join(home, "Library", "Application Support")
      : (absolute("XDG_STATE_HOME") ?? join(home, ".local", "state"));
  return join(named("MEMD_STATE_DIR") ?? join(base, "memd"), "memd.sock");
}

/**
 * Throws DaemonNotRunning unless this user or root has made the socket, in a directory where nobody else could.
 *
 * Node does not tell who is at the other end of a socket. Whoever else listened here would read every question.
 */
export async function checkOwner(path) {
  const limit = process.platform === "linux" ? 107 : 103;
  const length = Buffer.byteLength(path);
  if (length > limit) {
    throw new DaemonNotRunning(path, `its path has ${length} bytes, ${limit} are possible`, "Set MEMD_SOCKET to a shorter path.");
  }
  if (path.includes("\0")) throw new DaemonNotRunning(path, "no path holds a NUL");
  let socket;
  let directory;
  try {
    socket = await lstat(path);
    directory = await lstat(join(dirname(path), "."));
  } catch (error) {
    throw unreachable(path, error);
  }
  const mine = [ROOT, process.geteuid()];
  if (!mine.includes(socket.uid)) {
    throw new DaemonNotRunning(path, `it belongs to another user (uid ${socket.uid})`, OWN_PLACE);
  }
  const isOpen = (directory.mode & WRITABLE_BY_OTHERS) !== 0 && (directory.mode & STICKY) === 0;
  if (!mine.includes(directory.uid) || isOpen) {
    throw new DaemonNotRunning(path, "other users could put a socket there", OWN_PLACE);
  }
}

/** The error for a path that cannot be looked at or connected to. */
export function unreachable(path, error) {
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return new DaemonNotRunning(path, "there is no such socket");
    case "ECONNREFUSED":
      return new DaemonNotRunning(path);
    case "EACCES":
    case "EPERM":
      return new DaemonNotRunning(path, "this process may not connect to it", "Run the daemon and its clients as the same user.");
    case "ENOTSOCK":
    case "EPROTOTYPE":
      return new DaemonNotRunning(path, "it is not a socket of memd");
    default:
      return new DaemonNotRunning(path, error.message);
  }
}
