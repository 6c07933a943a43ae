import type {
  ChunkList,
  ChunksRequest,
  DuplicateList,
  DuplicatesRequest,
  EmbedReport,
  EmbedRequest,
  Explanation,
  ExplainRequest,
  FileList,
  FilesRequest,
  Found,
  GetRequest,
  Note,
  ReindexReport,
  ReindexRequest,
  Redacted,
  RedactRequest,
  Reloaded,
  SearchRequest,
  StatusReport,
  StatusRequest,
  Stopping,
  SyncReport,
  SyncRequest,
  TagsReport,
  TagsRequest,
  TurnList,
  TurnsRequest,
  WarmRequest,
} from "./messages.js";

export * from "./messages.js";

export interface ClientOptions {
  /** The daemon's socket; by default where this user's daemon listens. */
  socket?: string;
  /** Milliseconds that a whole call may take; null: as long as it takes. By default 10,000. */
  timeoutMs?: number | null;
}

/** Asks the daemon, any number of questions at a time on one connection. */
export class Client {
  constructor(options?: ClientOptions);
  search(query: string, options?: Omit<SearchRequest, "query">): Promise<Found>;
  get(path: string, options?: Omit<GetRequest, "path">): Promise<Note>;
  explain(query: string, options?: Omit<ExplainRequest, "query">): Promise<Explanation>;
  files(options?: FilesRequest): Promise<FileList>;
  chunks(path: string, options?: Omit<ChunksRequest, "path">): Promise<ChunkList>;
  turns(path: string, options?: Omit<TurnsRequest, "path">): Promise<TurnList>;
  sync(options?: SyncRequest): Promise<SyncReport>;
  status(options?: StatusRequest): Promise<StatusReport>;
  reindex(options?: ReindexRequest): Promise<ReindexReport>;
  embed(action: EmbedRequest["action"], options?: Omit<EmbedRequest, "action">): Promise<EmbedReport>;
  warm(sessionKey: string, options?: Omit<WarmRequest, "session_key">): Promise<SyncReport>;
  tags(options?: TagsRequest): Promise<TagsReport>;
  duplicates(options?: DuplicatesRequest): Promise<DuplicateList>;
  redact(text: string, options?: Omit<RedactRequest, "text">): Promise<Redacted>;
  reload(): Promise<Reloaded>;
  stop(): Promise<Stopping>;
  /** Ends the connection and all unanswered calls. The client stays closed. */
  close(): void;
}

/** The path at which this user's daemon listens. */
export function defaultSocket(environ?: Record<string, string | undefined>, platform?: string, home?: string): string;

/** The text as a block that is not indexed again when it is found in a transcript. */
export function marked(text: string, kind?: "recall" | "workspace" | "flush"): string;

/** The reply of a tool with such a mark. */
export function markedReply<T extends object>(reply: T): T & { _memd: string };

/** Any error of the client; `hint` says how to fix it, where that is known. */
export class MemdClientError extends Error {
  hint: string | null;
}

/** No daemon can be reached at the socket. */
export class DaemonNotRunning extends MemdClientError {
  socket: string;
  reason: string;
}

/** The connection ended, or broke the rules, before the answer. The request may have been carried out. */
export class ConnectionLost extends MemdClientError {}

/** The answer did not come in time. The request may still be carried out. */
export class TimedOut extends MemdClientError {
  timeoutMs: number;
}

/** Client and daemon are of versions that do not understand each other. */
export class ProtocolMismatch extends MemdClientError {
  ours: number;
  theirs: number;
}

/** The daemon answered that it could not; `code` is one of those in PROTOCOL.md, or a later one. */
export class RequestFailed extends MemdClientError {
  code: string;
}
