// Written from ../PROTOCOL.md: do not edit.

export const PROTOCOL = 2;

// The fields of each request.
export const REQUESTS = {
  "search": [
    "query",
    "max_results",
    "min_score",
    "source",
    "agent",
    "session_key",
    "max_chars",
    "now",
    "strict",
    "mode",
    "since",
    "until",
    "sort",
    "only"
  ],
  "get": [
    "path",
    "start_line",
    "lines",
    "agent",
    "session_key",
    "max_chars"
  ],
  "sync": [
    "agent",
    "force",
    "wait",
    "vectors",
    "patience_ms",
    "session_key"
  ],
  "reindex": [
    "agent",
    "force",
    "dry_run",
    "session_key"
  ],
  "explain": [
    "query",
    "max_results",
    "min_score",
    "source",
    "agent",
    "session_key",
    "now",
    "since",
    "until",
    "sort",
    "only"
  ],
  "files": [
    "agent",
    "source",
    "folder",
    "since",
    "until",
    "only",
    "sort",
    "after",
    "max_files",
    "session_key"
  ],
  "chunks": [
    "path",
    "agent",
    "skip",
    "max_chunks",
    "session_key"
  ],
  "turns": [
    "path",
    "agent",
    "skip",
    "max_turns",
    "session_key"
  ],
  "duplicates": [
    "agent",
    "session_key"
  ],
  "warm": [
    "session_key",
    "agent"
  ],
  "embed": [
    "action",
    "agent",
    "session_key"
  ],
  "status": [
    "agent",
    "session_key"
  ],
  "tags": [
    "agent",
    "session_key"
  ],
  "redact": [
    "text",
    "agent",
    "session_key"
  ],
  "reload": [
    "session_key"
  ],
  "stop": [
    "session_key"
  ]
};

// Of each message and part: the defaults of its fields, and which hold other parts: "one", a "list" or a "map" of them.
const PARTS = {
  "hello": {
    "defaults": {},
    "holds": {}
  },
  "found": {
    "defaults": {
      "results": [],
      "backend": "builtin",
      "provider": "none",
      "model": "",
      "mode": "hybrid",
      "fallback": false,
      "fallback_from": null,
      "fallback_reason": null,
      "citations": false,
      "scope_denied": false,
      "stale": false,
      "degraded": [],
      "max_chars": 0,
      "omitted": 0,
      "filtered": false
    },
    "holds": {
      "results": [
        "list",
        "Hit"
      ],
      "degraded": [
        "list",
        "Degraded"
      ]
    }
  },
  "Hit": {
    "defaults": {
      "source": "memory",
      "citation": null,
      "own_scale": false,
      "weak": false,
      "date": null,
      "file_date": false,
      "superseded": false,
      "superseded_by": null,
      "copies": [],
      "memory": null
    },
    "holds": {}
  },
  "Degraded": {
    "defaults": {},
    "holds": {}
  },
  "note": {
    "defaults": {
      "text": "",
      "missing": false,
      "start_line": 1,
      "end_line": 0,
      "next_line": null,
      "max_chars": 0,
      "total_lines": null
    },
    "holds": {}
  },
  "syncreport": {
    "defaults": {
      "files": 0,
      "chunks": 0,
      "changed": 0,
      "removed": 0,
      "took_s": 0.0,
      "vectors": "complete",
      "waiting_chunks": 0,
      "reason": null,
      "missing": [],
      "left_out": {},
      "timezone": ""
    },
    "holds": {}
  },
  "reindexreport": {
    "defaults": {
      "agents": [],
      "dry_run": false,
      "files": 0,
      "chunks": 0,
      "cached": 0,
      "to_embed": 0,
      "tokens": 0,
      "asks": []
    },
    "holds": {}
  },
  "filelist": {
    "defaults": {
      "files": [],
      "folders": {},
      "total": 0,
      "next": null
    },
    "holds": {
      "files": [
        "list",
        "ListedFile"
      ]
    }
  },
  "ListedFile": {
    "defaults": {
      "source": "memory",
      "size": 0,
      "modified": 0.0,
      "date": null,
      "file_date": false,
      "chunks": 0,
      "tags": [],
      "superseded": false,
      "superseded_by": null
    },
    "holds": {}
  },
  "chunklist": {
    "defaults": {
      "missing": false,
      "source": "memory",
      "chunks": [],
      "total": 0,
      "next": null,
      "redacted": {}
    },
    "holds": {
      "chunks": [
        "list",
        "ListedChunk"
      ]
    }
  },
  "ListedChunk": {
    "defaults": {
      "context": "",
      "windows": [],
      "vector": "waiting"
    },
    "holds": {}
  },
  "turnlist": {
    "defaults": {
      "missing": false,
      "turns": [],
      "total": 0,
      "next": null
    },
    "holds": {
      "turns": [
        "list",
        "ListedTurn"
      ]
    }
  },
  "ListedTurn": {
    "defaults": {
      "at": null,
      "cut": 0
    },
    "holds": {}
  },
  "duplicatelist": {
    "defaults": {
      "agent": "",
      "pairs": [],
      "more": false
    },
    "holds": {
      "pairs": [
        "list",
        "NotePair"
      ]
    }
  },
  "NotePair": {
    "defaults": {
      "other": null,
      "by": null
    },
    "holds": {
      "one": [
        "one",
        "NoteLines"
      ],
      "other": [
        "one",
        "NoteLines"
      ]
    }
  },
  "NoteLines": {
    "defaults": {
      "start_line": null,
      "end_line": null
    },
    "holds": {}
  },
  "embedreport": {
    "defaults": {
      "agents": {}
    },
    "holds": {
      "agents": [
        "map",
        "Embedding"
      ]
    }
  },
  "Embedding": {
    "defaults": {
      "state": "working",
      "reason": null,
      "next_try_s": null,
      "chunks": null,
      "tokens": null,
      "batch": null
    },
    "holds": {
      "batch": [
        "one",
        "BatchStatus"
      ]
    }
  },
  "BatchStatus": {
    "defaults": {
      "enabled": false,
      "on": true,
      "failures": 0,
      "limit": 2,
      "jobs": 0,
      "texts": 0,
      "files_left": 0,
      "reason": null,
      "at": null
    },
    "holds": {}
  },
  "tagsreport": {
    "defaults": {
      "agents": {}
    },
    "holds": {
      "agents": [
        "map",
        "AgentTags"
      ]
    }
  },
  "AgentTags": {
    "defaults": {
      "tags": [],
      "links": [],
      "omitted": 0
    },
    "holds": {
      "tags": [
        "list",
        "NameCount"
      ],
      "links": [
        "list",
        "NameCount"
      ]
    }
  },
  "NameCount": {
    "defaults": {
      "missing": false
    },
    "holds": {}
  },
  "explanation": {
    "defaults": {
      "terms": [],
      "match": "",
      "vector_weight": 0.0,
      "text_weight": 0.0,
      "min_score": 0.0,
      "candidates": [],
      "phrases": [],
      "left_out": [],
      "vector_share": 0.0,
      "text_share": 0.0,
      "share_weight": 0.0,
      "synonyms_weight": 0.0,
      "translations_weight": 0.0,
      "assumed_cosine": null,
      "calibration": null,
      "max_results": 0,
      "by_words": 0,
      "by_meaning": 0,
      "by_synonyms": 0,
      "considered": 0,
      "background": 0.0,
      "share_taken": 0.0,
      "strength": 0.0,
      "answers_from": 0.0,
      "missing": [],
      "alternatives": {}
    },
    "holds": {
      "found": [
        "one",
        "found"
      ],
      "candidates": [
        "list",
        "ExplainedHit"
      ]
    }
  },
  "ExplainedHit": {
    "defaults": {
      "cosine": null,
      "part": null,
      "keyword": null,
      "keyword_rank": null,
      "vector_rank": null,
      "terms": [],
      "window": null,
      "cut": null,
      "place": 0,
      "share": 0.0,
      "meaning": 0.0,
      "by_words": 0.0,
      "places": {},
      "chosen": null,
      "others": [],
      "owed": false,
      "foreign": 0.0,
      "taken": 0.0,
      "expanded": 0.0,
      "alternatives": 0.0,
      "of_time": false,
      "within": 0.0,
      "time_factor": 1.0,
      "repeats": false,
      "superseded": false,
      "older": null
    },
    "holds": {}
  },
  "redacted": {
    "defaults": {
      "counts": {},
      "agent": "",
      "workspace": "",
      "timezone": ""
    },
    "holds": {}
  },
  "reloaded": {
    "defaults": {
      "config": null,
      "changed": [],
      "error": null
    },
    "holds": {}
  },
  "stopping": {
    "defaults": {},
    "holds": {}
  },
  "statusreport": {
    "defaults": {
      "config_error": null,
      "config_waiting": [],
      "config_digest": "",
      "cache": {},
      "synonyms": {},
      "daemon_health": {},
      "damaged": [],
      "memory": null,
      "sent": []
    },
    "holds": {
      "agents": [
        "map",
        "AgentStatus"
      ],
      "cache": [
        "one",
        "Health"
      ],
      "synonyms": [
        "one",
        "Health"
      ],
      "daemon_health": [
        "one",
        "Health"
      ],
      "memory": [
        "one",
        "Memory"
      ],
      "sent": [
        "list",
        "SentToProvider"
      ]
    }
  },
  "SentToProvider": {
    "defaults": {},
    "holds": {}
  },
  "Memory": {
    "defaults": {
      "worker_mb": 0.0,
      "limit_mb": 0,
      "trouble": null
    },
    "holds": {}
  },
  "AgentStatus": {
    "defaults": {
      "last_pass": null,
      "passes": [],
      "rebuild": null,
      "sources": [],
      "extra_paths": [],
      "progress": null,
      "store": {},
      "damaged": [],
      "embedding": null,
      "endpoint": null,
      "chosen": "",
      "passed_over": [],
      "fallback": null,
      "sessions": null,
      "redacted": {},
      "backend_fallback": null,
      "qmd": null,
      "searches": null,
      "publish": null,
      "included": []
    },
    "holds": {
      "vectors": [
        "one",
        "Vectors"
      ],
      "keyword": [
        "one",
        "Health"
      ],
      "vector": [
        "one",
        "VectorHealth"
      ],
      "watcher": [
        "one",
        "Health"
      ],
      "provider_health": [
        "one",
        "Health"
      ],
      "last_pass": [
        "one",
        "Pass"
      ],
      "passes": [
        "list",
        "Pass"
      ],
      "progress": [
        "one",
        "Progress"
      ],
      "store": [
        "one",
        "Health"
      ],
      "embedding": [
        "one",
        "Embedding"
      ],
      "passed_over": [
        "list",
        "PassedOver"
      ],
      "fallback": [
        "one",
        "FallbackStatus"
      ],
      "sessions": [
        "one",
        "Sessions"
      ],
      "backend_fallback": [
        "one",
        "BackendFallback"
      ],
      "qmd": [
        "one",
        "QmdStatus"
      ],
      "searches": [
        "one",
        "Searches"
      ],
      "publish": [
        "one",
        "PublishStatus"
      ],
      "included": [
        "list",
        "IncludedStatus"
      ]
    }
  },
  "BackendFallback": {
    "defaults": {
      "since": null,
      "retry_at": null
    },
    "holds": {}
  },
  "QmdStatus": {
    "defaults": {
      "version": null,
      "search_mode": "search",
      "collections": [],
      "files": null,
      "exported": 0,
      "left_alone": 0,
      "updating": false,
      "last_update": null,
      "update_failure": null,
      "last_embed": null,
      "warnings": []
    },
    "holds": {}
  },
  "PublishStatus": {
    "defaults": {
      "files": 0,
      "waiting": 0,
      "reason": null,
      "taken_back": 0
    },
    "holds": {}
  },
  "IncludedStatus": {
    "defaults": {
      "reason": null
    },
    "holds": {}
  },
  "Sessions": {
    "defaults": {
      "files": 0,
      "turns": 0,
      "waiting": 0,
      "lines_skipped": {}
    },
    "holds": {}
  },
  "Searches": {
    "defaults": {
      "last_ms": []
    },
    "holds": {
      "slowest": [
        "one",
        "Slowest"
      ]
    }
  },
  "Slowest": {
    "defaults": {
      "parts": {}
    },
    "holds": {}
  },
  "PassedOver": {
    "defaults": {},
    "holds": {}
  },
  "FallbackStatus": {
    "defaults": {
      "in_use": false,
      "instead_of": null,
      "reason": null
    },
    "holds": {}
  },
  "Vectors": {
    "defaults": {
      "done": 0,
      "waiting": 0,
      "eta_s": null,
      "note": null,
      "resident_mb": 0.0,
      "on_disk": false
    },
    "holds": {}
  },
  "Pass": {
    "defaults": {
      "failed": null,
      "changed": 0,
      "removed": 0
    },
    "holds": {}
  },
  "Progress": {
    "defaults": {},
    "holds": {}
  },
  "Health": {
    "defaults": {
      "ok": true,
      "reason": null
    },
    "holds": {}
  },
  "VectorHealth": {
    "defaults": {
      "ok": true,
      "reason": null,
      "enabled": true,
      "available": true
    },
    "holds": {}
  },
  "failure": {
    "defaults": {
      "hint": null
    },
    "holds": {}
  }
};

/** The message with the defaults of the fields that it lacks, in all its parts. Fields that are not known stay. */
export function complete(name, message) {
  const { defaults, holds } = PARTS[name];
  const whole = { ...structuredClone(defaults), ...message };
  for (const [field, [how, part]] of Object.entries(holds)) {
    const value = whole[field];
    if (value === null || value === undefined) continue;
    if (how === "one") whole[field] = complete(part, value);
    else if (how === "list") whole[field] = value.map((each) => complete(part, each));
    else whole[field] = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, complete(part, each)]));
  }
  return whole;
}
