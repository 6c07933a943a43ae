// Written from ../PROTOCOL.md: do not edit.

export const PROTOCOL: number;

export interface SearchRequest {
  /** the question, or words of the answer */
  query: string;
  /** 1 to 50; nil: the configured number */
  max_results?: number | null;
  /** 0 to 1, the least `score` of a hit; nil: the configured one */
  min_score?: number | null;
  /** nil: every source the agent has */
  source?: "memory" | "sessions" | null;
  /** see above */
  agent?: string | null;
  /** see above */
  session_key?: string | null;
  /** of all snippets together, including footers if citations are on; nil: the configured number; 0: no limit */
  max_chars?: number | null;
  /** the day or moment of the question, in ISO 8601 (`2026-02-09`, `2026-02-09T18:30+01:00`); nil: the daemon's clock */
  now?: string | Date | null;
  /** leave out weak hits (see [Hit](#hit)): an empty answer instead of the closest that there is */
  strict?: boolean;
  /** what hits are found by; nil and `hybrid`: by all there is. `qmd` does not distinguish */
  mode?: "hybrid" | "keyword" | "vector" | null;
  /** nothing older is found; see below */
  since?: string | null;
  /** nothing later is found */
  until?: string | null;
  /** `time`: of what has the least score, the newest first; if nothing has it, the newest of all */
  sort?: "relevance" | "time";
  /** what takes part. `tag:work`: notes with this tag, or one below it such as `work/mail`; `property:status=done`: notes whose front matter says so, in a list, too; of these each must hold, and the letter case does not count. `path:memory/**`: files that one of such globs matches; `path:!old/`: none of these. Globs are as in the setting `exclude`, but where a file that may be seen has a name with the brackets as they are written, they stand for themselves: `path:memory/proj [x]/` */
  only?: string[];
}

export interface GetRequest {
  /** as in a hit; a leading `./` is ignored */
  path: string;
  /** the first line to read, from 1 */
  start_line?: number;
  /** how many; nil: as many as one answer holds */
  lines?: number | null;
  /** see above */
  agent?: string | null;
  /** see above */
  session_key?: string | null;
  /** of the text, 100 or more; nil: as many as one reply holds */
  max_chars?: number | null;
}

export interface SyncRequest {
  /** nil: every agent */
  agent?: string | null;
  /** read every file, whatever its size and time say, and forget the files of a root that does not exist */
  force?: boolean;
  /** answer when all text that was on disk at the request is searchable */
  wait?: boolean;
  /** with `wait`: wait for vectors, too, while they progress */
  vectors?: boolean;
  /** timeout: answer after so many milliseconds at the latest, with what is done by then; nil: no limit */
  patience_ms?: number | null;
  /** nil: the owner; else the request means only the agent of that key */
  session_key?: string | null;
}

export interface ReindexRequest {
  /** nil: every agent */
  agent?: string | null;
  /** embed every text again: do not use stored vectors */
  force?: boolean;
  /** only report the cost */
  dry_run?: boolean;
  /** nil: the owner; else only the agent of that key, for a conversation that no other person reads */
  session_key?: string | null;
}

export interface ExplainRequest {
  query: string;
  max_results?: number | null;
  min_score?: number | null;
  source?: "memory" | "sessions" | null;
  agent?: string | null;
  session_key?: string | null;
  now?: string | Date | null;
  since?: string | null;
  until?: string | null;
  sort?: "relevance" | "time";
  only?: string[];
}

export interface FilesRequest {
  /** see above */
  agent?: string | null;
  /** nil: every source the agent has */
  source?: "memory" | "sessions" | null;
  /** ends with a slash: what lies in this folder, with its folders as one entry each; empty: at the top; nil: every file */
  folder?: string | null;
  /** as of [`search`](#search): files with a chunk of this time */
  since?: string | null;
  /** likewise */
  until?: string | null;
  /** as of [`search`](#search) */
  only?: string[];
  /** `time`: the newest first, where `folder` is nil */
  sort?: "path" | "time";
  /** `next` of the page before */
  after?: string | null;
  /** 1 to 500: files and folders of the page */
  max_files?: number;
  /** nil: the owner; any key is denied */
  session_key?: string | null;
}

export interface ChunksRequest {
  /** as in a hit */
  path: string;
  /** see above */
  agent?: string | null;
  /** chunks before the page */
  skip?: number;
  /** 1 to 200 */
  max_chunks?: number;
  /** nil: the owner; any key is denied */
  session_key?: string | null;
}

export interface TurnsRequest {
  /** as in a hit */
  path: string;
  /** see above */
  agent?: string | null;
  /** turns before the page */
  skip?: number;
  /** 1 to 200 */
  max_turns?: number;
  /** nil: the owner; any key is denied */
  session_key?: string | null;
}

export interface DuplicatesRequest {
  agent?: string | null;
  /** denied with any key */
  session_key?: string | null;
}

export interface WarmRequest {
  /** of the conversation that begins */
  session_key: string;
  /** see above */
  agent?: string | null;
}

export interface EmbedRequest {
  /** `resume` also asks a provider again that has refused */
  action: "pause" | "resume" | "confirm" | "batch_on";
  /** nil: every agent */
  agent?: string | null;
  /** nil: the owner; else only the agent of that key, for a conversation that no other person reads */
  session_key?: string | null;
}

export interface StatusRequest {
  /** nil: every agent */
  agent?: string | null;
  /** nil: the owner; else only the agent of that key is shown, and none if the conversation is denied */
  session_key?: string | null;
}

export interface TagsRequest {
  /** nil: every agent */
  agent?: string | null;
  /** nil: the owner; else only the agent of that key, and the notes that this conversation may see; denied where it may see nothing */
  session_key?: string | null;
}

export interface RedactRequest {
  /** at most 65,536 characters */
  text: string;
  /** see above */
  agent?: string | null;
  /** see above; denied in a conversation that other people read */
  session_key?: string | null;
}

export interface ReloadRequest {
  /** nil: the owner; any key is denied */
  session_key?: string | null;
}

export interface StopRequest {
  /** nil: the owner; any key is denied */
  session_key?: string | null;
}

export interface Found {
  /** the best first */
  results: Hit[];
  /** which backend answered: `builtin`, `qmd`, `postgres` */
  backend: string;
  /** of the vectors */
  provider: string;
  /** of the vectors */
  model: string;
  /** `hybrid`, `keyword` or `vector` */
  mode: string;
  /** a backend or provider other than the configured one answered */
  fallback: boolean;
  /** the configured one */
  fallback_from: string | null;
  /** why it did not answer */
  fallback_reason: string | null;
  /** hits carry a citation */
  citations: boolean;
  /** the conversation may not search; there are no results */
  scope_denied: boolean;
  /** the results may lack something that was written before the search; if the cause lasts, `degraded` names it */
  stale: boolean;
  /** what was missing for this answer */
  degraded: Degraded[];
  /** the limit for all snippets, as requested or configured; 0: no limit */
  max_chars: number;
  /** hits that did not fit into `max_chars` */
  omitted: number;
  /** the daemon knows filters and `sort`; false: it is older, and has ignored them */
  filtered: boolean;
}

export interface Hit {
  /** relative to the workspace, absolute for an extra path, or `sessions/...`; of an included memory, below its name (`team:alice/main/memory/2026-02-09.md`); pass it to `get` unchanged */
  path: string;
  /** the first line of the snippet, from 1 */
  start_line: number;
  /** its last line */
  end_line: number;
  /** relevance, 0 to 1, with three decimals; `min_score` is compared with it. From .35 on a hit is worth reading, whether keywords or vectors found it */
  score: number;
  /** the text; of several chunks where hits follow each other in their file, then at most twice as long as of one. A turn of a transcript begins with its time and speaker (`2026-03-02 09:02 User: `), or, in the same hour as the turn shown before it, with the speaker alone (`User: `) */
  snippet: string;
  source: "memory" | "sessions";
  /** `path#L3-L9`, if citations are on */
  citation: string | null;
  /** the `score` is that of another backend (`qmd`), unchanged: `min_score` did not cut the hit, and .35 has no meaning. Tools show the field as `ownScale` */
  own_scale: boolean;
  /** nothing that was found is likely to answer. All hits of an answer are weak together, except hits of `qmd`, which never are; a part of a transcript that only repeats the question always is. `strict` leaves weak hits out */
  weak: boolean;
  /** of when the text is: a day, or the first and the last with a slash between; nil: not known */
  date: string | null;
  /** `date` is when the file was written: nothing in it says a date */
  file_date: boolean;
  /** it holds no more: its note has `status: superseded` (or `archived`, `obsolete`, `deprecated`, 已归档, 作废 ...) or `superseded-by` in its front matter, or what answers is struck through (`~~...~~`). Its score was lowered, unless the query asks for what was */
  superseded: boolean;
  /** the note that replaced it, as the front matter names it, in small letters */
  superseded_by: string | null;
  /** where else the same is said, at most five places, each as `path#L3-L9`: copied notes, forked sessions, repeated questions. The hit is the latest of them, unless the query asks for what was */
  copies: string[];
  /** the included memory that the hit is from, such as `team:alice/main`, which its `path` begins with; nil: the agent's own */
  memory: string | null;
}

export interface Degraded {
  /** `keyword`, `vector`, `query_embedding`, `synonyms`, `rerank`, `watcher`, `provider`, `rebuild`, `store`, or `included`: a memory that the agent includes */
  part: string;
  /** for a person */
  reason: string;
}

export interface Note {
  /** as requested */
  path: string;
  /** the lines; at most 120 of them, and 12,000 characters */
  text: string;
  /** the file does not exist (any more), is not indexed, or is hidden from this conversation: the three look the same. For an indexed file that cannot be read just now, the request fails with `unavailable` */
  missing: boolean;
  /** of the text */
  start_line: number;
  /** of the text; 0 if there is none */
  end_line: number;
  /** where to read on: send it as `start_line`; nil at the end of the file. Above 1,000,000,000 it is a place within a line that is too long for one answer, or within a long turn of a transcript: the next text continues where `text` ends, without a line end in between */
  next_line: number | null;
  /** how much an agent should read at once, as configured; the text may be longer */
  max_chars: number;
  /** of a file, its number of lines; of a transcript, and only if there is no text, the last line with a turn; nil: not known */
  total_lines: number | null;
}

export interface SyncReport {
  /** files that are indexed now */
  files: number;
  /** chunks that are indexed now */
  chunks: number;
  /** files that this pass indexed again */
  changed: number;
  /** files that this pass removed */
  removed: number;
  /** seconds */
  took_s: number;
  /** `complete` or `waiting` */
  vectors: string;
  /** chunks without a vector yet; keywords find them */
  waiting_chunks: number;
  /** why they wait */
  reason: string | null;
  /** configured paths whose directory does not exist, not those of presets; what the index has of them is as it was seen last */
  missing: string[];
  /** of a request for all agents: those that cannot run, each with the reason. The numbers are of the others */
  left_out: Record<string, string>;
  /** answering `warm`: in which the agent's days begin, such as `Europe/Berlin`, for the names of daily notes; empty: that of the machine */
  timezone: string;
}

export interface ReindexReport {
  /** whose index is rebuilt */
  agents: string[];
  /** nothing was begun */
  dry_run: boolean;
  /** to read */
  files: number;
  /** to index */
  chunks: number;
  /** chunks whose vector is stored already */
  cached: number;
  /** chunks to embed */
  to_embed: number;
  /** estimate for those chunks */
  tokens: number;
  /** agents whose chunks would wait for [`embed`](#embed) with `confirm` */
  asks: string[];
}

export interface FileList {
  /** whose files they are */
  agent: string;
  /** in the order that was asked for */
  files: ListedFile[];
  /** with `folder`: the folders in it, with their last slash, and how many files lie below each */
  folders: Record<string, number>;
  /** files that the filters let through, in the folder and below */
  total: number;
  /** send it as `after` to read on; nil: this was the last page */
  next: string | null;
}

export interface ListedFile {
  /** as in a hit */
  path: string;
  source: "memory" | "sessions";
  /** bytes */
  size: number;
  /** when it was written, in seconds since 1970 */
  modified: number;
  /** as of a [Hit](#hit), of all its chunks together */
  date: string | null;
  /** as of a hit */
  file_date: boolean;
  chunks: number;
  /** as they are written in the note */
  tags: string[];
  /** it says that it holds no more */
  superseded: boolean;
  /** what replaced it, by its front matter */
  superseded_by: string | null;
}

export interface ChunkList {
  /** as requested */
  path: string;
  /** the file is not indexed */
  missing: boolean;
  source: "memory" | "sessions";
  /** in the order of their lines */
  chunks: ListedChunk[];
  /** of the file */
  total: number;
  /** send it as `skip` to read on; nil: this was the last page */
  next: number | null;
  /** kind of secret -> how often it was taken out of the file */
  redacted: Record<string, number>;
}

export interface ListedChunk {
  /** from 1 */
  start_line: number;
  end_line: number;
  /** as it is indexed */
  text: string;
  /** what places it: titles and headings. It is searched, and never shown in a hit */
  context: string;
  /** first and last line of each part that has a vector of its own */
  windows: [number, number][];
  /** `waiting`, `done`, or `refused` by the provider */
  vector: string;
}

export interface TurnList {
  /** as requested */
  path: string;
  /** no such transcript is indexed */
  missing: boolean;
  /** in order */
  turns: ListedTurn[];
  /** of the transcript */
  total: number;
  /** send it as `skip` to read on; nil: this was the last page */
  next: number | null;
}

export interface ListedTurn {
  /** `user` or `assistant` */
  role: string;
  /** seconds since 1970; nil: the transcript does not say */
  at: number | null;
  /** of the transcript */
  start_line: number;
  end_line: number;
  /** redacted */
  text: string;
  /** characters at the end of the turn that had no room */
  cut: number;
}

export interface DuplicateList {
  agent: string;
  /** at most 200: what is superseded first, then copies, each in the order of paths */
  pairs: NotePair[];
  /** there are others */
  more: boolean;
}

export interface NotePair {
  /** copy: the other says all that this one does */
  why: "superseded" | "copy";
  /** the earlier, or the one that is superseded */
  one: NoteLines;
  /** the later; nil: the note does not say what replaced it, or no such note is indexed */
  other: NoteLines | null;
  /** what replaced it, as it says */
  by: string | null;
}

export interface NoteLines {
  path: string;
  /** nil: the whole note */
  start_line: number | null;
  end_line: number | null;
}

export interface EmbedReport {
  /** their state now, by id */
  agents: Record<string, Embedding>;
}

export interface Embedding {
  /** `working`, `backing_off`, `stopped`, `paused`, `waiting_for_confirmation`, or `none`: there is no provider, or it has not answered yet; `reason` says which */
  state: string;
  /** why nothing is embedded just now, and what to do about it */
  reason: string | null;
  /** seconds until a failed request is tried again */
  next_try_s: number | null;
  /** chunks that would be sent, if a confirmation is missing */
  chunks: number | null;
  /** estimate for them */
  tokens: number | null;
  /** nil: the provider has no batch API */
  batch: BatchStatus | null;
}

export interface BatchStatus {
  /** by the configuration */
  enabled: boolean;
  /** false: jobs failed too often, and plain requests take their place */
  on: boolean;
  /** failures since the last success */
  failures: number;
  /** how many failures turn jobs off */
  limit: number;
  /** running jobs */
  jobs: number;
  /** texts in them */
  texts: number;
  /** files of ended jobs that the provider has not deleted yet; memd tries again */
  files_left: number;
  /** of the last failure, or why there are no jobs */
  reason: string | null;
  /** time of the last failure, in seconds since 1970 */
  at: number | null;
}

export interface TagsReport {
  /** by id */
  agents: Record<string, AgentTags>;
}

export interface AgentTags {
  /** tags, the most frequent first */
  tags: NameCount[];
  /** notes that are linked to (`[[plan]]`), the most frequent first */
  links: NameCount[];
  /** names beyond the first 1,000 tags and the first 1,000 links */
  omitted: number;
}

export interface NameCount {
  /** as it is written, a tag without `#` */
  name: string;
  /** how many notes have it */
  notes: number;
  /** of a link: no note of that name is indexed, as far as the conversation may see */
  missing: boolean;
}

export interface Explanation {
  /** the answer that `search` would have given; see [`found`](#found) */
  found: Found;
  /** terms of the query, as they are sent to the keyword index */
  terms: string[];
  /** the expression that the keyword index got */
  match: string;
  /** as configured */
  vector_weight: number;
  /** as configured */
  text_weight: number;
  min_score: number;
  /** the first candidates, and those of the others that are hits; the best first, except those that are `owed` or have an `older` */
  candidates: ExplainedHit[];
  /** those of the terms that are names or quotations */
  phrases: string[];
  /** words of the query that are not searched */
  left_out: string[];
  /** how much meaning counted: 1 by the default weights; 0: there was nothing to compare */
  vector_share: number;
  /** how much words counted: 1 by the default weights, 2 where there was nothing to compare; 0: no word was found */
  text_share: number;
  /** the weight of the share of the query's words */
  share_weight: number;
  /** the weight of what synonyms add to that share */
  synonyms_weight: number;
  /** the weight of what text in another script contains in any form; it is larger where there was nothing to compare */
  translations_weight: number;
  /** of a chunk that has no vector yet */
  assumed_cosine: number | null;
  /** the cosines that mean 0 and 1 */
  calibration: [number, number] | null;
  max_results: number;
  /** candidates that keywords proposed */
  by_words: number;
  /** candidates that vectors proposed */
  by_meaning: number;
  /** candidates without a vector that synonyms and translations proposed */
  by_synonyms: number;
  /** candidates in all */
  considered: number;
  /** subtracted from each closeness: three quarters of how much closer the query is to the index as a whole than is usual */
  background: number;
  /** the largest `taken` of a candidate */
  share_taken: number;
  /** of the strongest candidate, less what the names in `missing` take off */
  strength: number;
  /** the hits are weak where `strength` is less than this */
  answers_from: number;
  /** names that the query asks for, and that no text contains */
  missing: string[];
  /** words of the query with their synonyms and translations */
  alternatives: Record<string, string[]>;
}

export interface ExplainedHit {
  path: string;
  /** of the chunk */
  start_line: number;
  /** of the chunk */
  end_line: number;
  score: number;
  /** nil: the chunk has no vector, or vectors are off */
  cosine: number | null;
  /** the cosine of its best part; nil: it has no parts with a vector */
  part: number | null;
  /** -bm25; nil: no keyword matched */
  keyword: number | null;
  /** place among the keyword candidates, from 1 */
  keyword_rank: number | null;
  /** place among the vector candidates, from 1 */
  vector_rank: number | null;
  /** terms of the query that the window contains */
  terms: string[];
  /** first and last line of the snippet; of a candidate that was cut, of the snippet it would have had */
  window: [number, number] | null;
  /** nil: it is a hit; else what cut it: `min_score`, `duplicate`, `overlap` or `max_results`; `joined`: the hit of one of `others` shows its lines, too */
  cut: string | null;
  /** by its score among all candidates, from 1 */
  place: number;
  /** the share of the query's words and phrases that the chunk or its context contains, 0 to 1; a rare word weighs more */
  share: number;
  /** the part of the score that comes from vectors */
  meaning: number;
  /** the part of the score that comes from words */
  by_words: number;
  /** each term with the lines of the window that it begins on */
  places: Record<string, number[]>;
  /** why this window: `whole` chunk, `terms` (the lines with most of them), `part` (the one that is closest in meaning), `synonyms` (the lines with most of these), `beginning`, `rest` (what others do not show) */
  chosen: string | null;
  /** places of candidates that show the same text, or some of its lines */
  others: number[];
  /** it comes before better candidates, because two hits of the other source come before it */
  owed: boolean;
  /** 0 to 1, how much of it is written in other scripts than the query */
  foreign: number;
  /** 0 to 1, the share of the query's words that it is assumed to contain as such text: what text in the query's script contains that is about as close to it */
  taken: number;
  /** 0 to 1, how much of the query's words it contains as they are, as synonyms or translated; a word weighs more that few of the candidates contain or, where the chunk has no vector, few of all chunks. 0 also where it was not looked for: of the hundred best it is, and of what has no vector */
  expanded: number;
  /** what of `expanded` synonyms and translations add */
  alternatives: number;
  /** it is of a time that the query names */
  of_time: boolean;
  /** 0 to 1, how much of its time is named by the query; 1: it is of no other time */
  within: number;
  /** the factor on `meaning` and `by_words` because of that; 1: it is of no time that the query names */
  time_factor: number;
  /** it is part of a transcript and only repeats the question: its `score`, `meaning` and `by_words` were lowered to .35; `place` is the one before that */
  repeats: boolean;
  /** it holds no more, and its score was lowered: to four fifths of its evidence, behind the note that replaced it, and not below .35 */
  superseded: boolean;
  /** the `place` of a candidate that this one replaces, since it says the same on a later day, or a text says that it replaces it: this one comes directly before it and has its `score`; `meaning`, `by_words` and `place` are its own */
  older: number | null;
}

export interface Redacted {
  /** with as many line ends as before, and `[REDACTED:kind]` for each secret */
  text: string;
  /** how many were taken out, by their kind */
  counts: Record<string, number>;
  /** whose rules these were */
  agent: string;
  /** of that agent */
  workspace: string;
  /** in which its days begin; empty: that of the machine */
  timezone: string;
}

export interface Reloaded {
  /** the configuration file in use; nil: built-in defaults */
  config: string | null;
  /** settings with a new value, such as `agents.main.scope.default`; `agents.<id>` for an agent that was added or removed */
  changed: string[];
  /** why the file cannot be used; the configuration before stays in force */
  error: string | null;
}

export interface Stopping {
  /** of the daemon, in its own pid namespace: outside of a container it is another number */
  pid: number;
}

export interface StatusReport {
  /** of the daemon */
  version: string;
  protocol: number;
  /** of the daemon */
  pid: number;
  /** seconds */
  uptime_s: number;
  /** where it listens */
  socket: string;
  /** the configuration file in use; nil: built-in defaults */
  config: string | null;
  /** by id */
  agents: Record<string, AgentStatus>;
  /** why the file cannot be used; the configuration before is in force */
  config_error: string | null;
  /** settings that have another value in the file, and wait for [`reload`](#reload) */
  config_waiting: string[];
  /** a hash of the configuration in force: equal for equal configurations, in one version of memd; "": not known */
  config_digest: string;
  /** of the cache of vectors: without it, texts may be embedded twice */
  cache: Health;
  /** of the thesaurus: without it, words are looked for without synonyms and translations */
  synonyms: Health;
  /** of what the daemon does beside answering: listening, saving vectors, keeping to its memory limit */
  daemon_health: Health;
  /** damaged files of the cache that are kept, the newest first */
  damaged: string[];
  /** nil: the system does not report it */
  memory: Memory | null;
  /** of all agents, since memd keeps its cache of vectors; told to the owner alone */
  sent: SentToProvider[];
}

export interface SentToProvider {
  provider: string;
  model: string;
  /** notes, parts, questions and probes */
  texts: number;
  /** estimate */
  tokens: number;
}

export interface Memory {
  daemon_mb: number;
  /** of the process that embeds; 0: it does not run just now */
  worker_mb: number;
  /** the limit of both together; 0: none */
  limit_mb: number;
  /** why they hold more than the limit, and what to do about it */
  trouble: string | null;
}

export interface AgentStatus {
  /** directory */
  workspace: string;
  backend: string;
  provider: string;
  model: string;
  /** indexed */
  files: number;
  /** indexed */
  chunks: number;
  vectors: Vectors;
  /** paths that changed and are not indexed yet: they wait for a pass, or one is reading them. A look at everything counts as one */
  dirty: number;
  /** files that are not indexed, or not all of them, by reason */
  skipped: Record<string, number>;
  /** of keyword search */
  keyword: Health;
  /** of vector search */
  vector: VectorHealth;
  /** of the watch on the directories; a `reason` with `ok = true` is a remark, no fault */
  watcher: Health;
  /** of the embeddings */
  provider_health: Health;
  /** of the index on disk */
  store_bytes: number;
  /** nil: there was none yet */
  last_pass: Pass | null;
  /** the last 20 that changed something or failed, the newest first */
  passes: Pass[];
  /** what is being rebuilt, and why; nil: nothing */
  rebuild: string | null;
  sources: string[];
  extra_paths: string[];
  /** of a pass or a rebuild that reads files just now */
  progress: Progress | null;
  /** whether the index can be opened, read and written; if it cannot be opened, its agent answers nothing */
  store: Health;
  /** damaged files of the index that are kept, the newest first */
  damaged: string[];
  /** nil: there is no provider */
  embedding: Embedding | null;
  /** the host that notes and questions are sent to; nil: they stay on this machine */
  endpoint: string | null;
  /** why this provider is in use */
  chosen: string;
  /** providers that were considered before it, in that order */
  passed_over: PassedOver[];
  /** nil: none is configured */
  fallback: FallbackStatus | null;
  /** nil: transcripts are not among its sources */
  sessions: Sessions | null;
  /** by kind of secret, how often it was removed from what is indexed */
  redacted: Record<string, number>;
  /** nil: the configured backend answers */
  backend_fallback: BackendFallback | null;
  /** nil: qmd does not answer just now, or is not configured */
  qmd: QmdStatus | null;
  /** nil: there was no search since the daemon began */
  searches: Searches | null;
  /** nil: its notes are published nowhere */
  publish: PublishStatus | null;
  /** memories of others that are searched together with its own */
  included: IncludedStatus[];
}

export interface BackendFallback {
  /** the configured backend */
  from: string;
  reason: string;
  /** Unix time of the first failure in a row; nil: the backend is not ready yet */
  since: number | null;
  /** Unix time; the first search after it tries the configured backend again */
  retry_at: number | null;
}

export interface QmdStatus {
  /** the command that memd runs */
  command: string;
  /** nil: not known */
  version: string | null;
  search_mode: string;
  collections: string[];
  /** files in its index; nil: not known */
  files: number | null;
  /** transcripts that memd wrote for it */
  exported: number;
  /** files in the directory of these transcripts that memd did not write */
  left_alone: number;
  updating: boolean;
  /** Unix time of the last update that succeeded */
  last_update: number | null;
  /** why the last update failed; nil: it succeeded */
  update_failure: string | null;
  /** Unix time of the last embedding that succeeded */
  last_embed: number | null;
  /** settings of it that are not used, and why */
  warnings: string[];
}

export interface PublishStatus {
  /** the server, as the configuration names it */
  to: string;
  /** the name of the memory there */
  memory: string;
  /** files that the server has as they are here */
  files: number;
  /** files that are to be written or deleted there */
  waiting: number;
  /** why nothing is published just now */
  reason: string | null;
  /** vectors that the server had, which were not embedded again since the daemon began */
  taken_back: number;
}

export interface IncludedStatus {
  /** the server, as the configuration names it, and the name there: `team:alice/main` */
  memory: string;
  /** why it takes no part in searches just now; nil: it does */
  reason: string | null;
}

export interface Sessions {
  /** transcripts that are indexed */
  files: number;
  /** turns in them; if a session was forked, the turns that both sessions have count in each */
  turns: number;
  /** transcripts that have grown, and are indexed when they have grown enough or are quiet */
  waiting: number;
  /** lines that were not understood, by reason: `broken`, `unknown`, `too_long` */
  lines_skipped: Record<string, number>;
}

export interface Searches {
  /** how many searches these are */
  count: number;
  median_ms: number;
  slowest: Slowest;
  /** milliseconds of each, the oldest first */
  last_ms: number[];
}

export interface Slowest {
  /** Unix time of its end */
  at: number;
  took_ms: number;
  /** milliseconds by part, the longest first; parts that ran at the same time have one joined name, `keywords + question's vector`. Empty for a fast search */
  parts: Record<string, number>;
}

export interface PassedOver {
  provider: string;
  /** why it was not taken */
  reason: string;
}

export interface FallbackStatus {
  /** the second provider */
  provider: string;
  /** it takes the place of the first one */
  in_use: boolean;
  /** the first one */
  instead_of: string | null;
  /** why it is in use, or why it is not available */
  reason: string | null;
}

export interface Vectors {
  /** chunks */
  done: number;
  /** chunks */
  waiting: number;
  /** seconds; nil: nothing waits, or no rate is known yet */
  eta_s: number | null;
  /** why none are made, if that is no fault */
  note: string | null;
  /** their memory and that of the keyword index, in millions of bytes */
  resident_mb: number;
  /** a search reads them from disk, to keep memory below the limit. Answers are the same */
  on_disk: boolean;
}

export interface Pass {
  /** its end, in seconds since 1970 */
  at: number;
  /** seconds */
  took_s: number;
  /** why */
  failed: string | null;
  /** files that were indexed anew */
  changed: number;
  /** files that left the index */
  removed: number;
}

export interface Progress {
  /** files */
  done: number;
  /** all files that it reads */
  total: number;
}

export interface Health {
  ok: boolean;
  /** why not */
  reason: string | null;
}

export interface VectorHealth {
  ok: boolean;
  /** why not */
  reason: string | null;
  /** by the configuration */
  enabled: boolean;
  /** whether search by meaning works */
  available: boolean;
}

export interface Failure {
  /** see below */
  code: string;
  /** what is wrong, for a person */
  message: string;
  /** how to fix it */
  hint: string | null;
}
