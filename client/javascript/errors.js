// What the client throws. Anything else is a bug of this package, or of the call.

const START = "Start it with `memd run` or `memd-ctl up`; if it listens elsewhere, set MEMD_SOCKET to that path.";

/** Any error of the client; `hint` says how to fix it, where that is known. */
export class MemdClientError extends Error {
  constructor(message, hint = null) {
    super(hint ? `${message} ${hint}` : message);
    this.name = new.target.name;
    this.hint = hint;
  }
}

/** No daemon can be reached at the socket. */
export class DaemonNotRunning extends MemdClientError {
  constructor(socket, reason = "nothing listens there", hint = START) {
    super(`No memd daemon can be reached at ${socket}: ${reason}.`, hint);
    this.socket = socket;
    this.reason = reason;
  }
}

/** The connection ended, or broke the rules, before the answer. The request may have been carried out. */
export class ConnectionLost extends MemdClientError {}

/** The answer did not come in time. The request may still be carried out. */
export class TimedOut extends MemdClientError {
  constructor(timeoutMs) {
    super(
      `memd did not answer within ${timeoutMs / 1000} s.`,
      "`memd-ctl doctor` tells how it is; a longer timeout may do.",
    );
    this.timeoutMs = timeoutMs;
  }
}

/** Client and daemon are of versions that do not understand each other. */
export class ProtocolMismatch extends MemdClientError {
  constructor(ours, theirs) {
    const older = theirs > ours ? "memd-client" : "memd-daemon";
    super(
      `This client speaks protocol ${ours} of memd, the daemon speaks ${theirs}.`,
      `Upgrade ${older}, and start again what was upgraded.`,
    );
    this.ours = ours;
    this.theirs = theirs;
  }
}

/** The daemon answered that it could not; `code` is one of those in PROTOCOL.md, or a later one. */
export class RequestFailed extends MemdClientError {
  constructor(code, message, hint = null) {
    super(message, hint);
    this.code = code;
  }
}
