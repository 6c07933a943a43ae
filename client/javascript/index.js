// The client of memd for Node: see README.md, and client/PROTOCOL.md for what travels.
export { Client } from "./client.js";
export { defaultSocket } from "./address.js";
export {
  ConnectionLost,
  DaemonNotRunning,
  MemdClientError,
  ProtocolMismatch,
  RequestFailed,
  TimedOut,
} from "./errors.js";
export { marked, markedReply } from "./watermark.js";
export { PROTOCOL } from "./messages.js";
