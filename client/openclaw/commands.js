// `openclaw memory`: status, search and index, by memd.

import { MemdClientError } from "memd-client";

/** Adds the commands to OpenClaw's command line. */
export function registerCommands(program, memd) {
  const memory = program.command("memory").description("Search memd, and see how it is");
  memory
    .command("status")
    .description("Show how memd is")
    .option("--agent <id>", "Agent id (default: all agents)")
    .option("--json", "Print JSON")
    .action((options) => run(memd, () => status(memd, options)));
  memory
    .command("search")
    .description("Search memory")
    .argument("<query>", "A question, or words of the answer")
    .option("--agent <id>", "Agent id")
    .option("--max-results <n>", "How many hits at most", Number)
    .option("--json", "Print JSON")
    .action((query, options) => run(memd, () => search(memd, query, options)));
  memory
    .command("index")
    .description("Bring the index up to date with the disk")
    .option("--agent <id>", "Agent id (default: all agents)")
    .option("--force", "Read every file again", false)
    .action((options) => run(memd, () => index(memd, options)));
}

async function run(memd, act) {
  try {
    console.log(await act());
  } catch (error) {
    if (!(error instanceof MemdClientError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    memd.close();
  }
}

async function status(memd, { agent, json }) {
  const report = await memd.status({ agent });
  if (json) return JSON.stringify(report, null, 2);
  const lines = [`memd ${report.version}, pid ${report.pid}, socket ${report.socket}`];
  for (const [id, one] of Object.entries(report.agents)) {
    const waiting = one.vectors.waiting ? `, ${one.vectors.waiting} wait for a vector` : "";
    lines.push("", `${id}  ${one.workspace}`, `  ${one.files} files, ${one.chunks} chunks${waiting}`, `  ${one.provider} ${one.model}`);
    for (const part of ["keyword", "vector", "watcher", "provider_health", "store"]) {
      if (!one[part].ok) lines.push(`  ${part}: ${one[part].reason}`);
    }
  }
  return lines.join("\n");
}

async function search(memd, query, { agent, maxResults, json }) {
  const found = await memd.search(query, { agent, max_results: maxResults });
  if (json) return JSON.stringify(found, null, 2);
  if (!found.results.length) return "Nothing was found.";
  return found.results.map((hit) => `${hit.path}:${hit.start_line}-${hit.end_line}  ${hit.score}\n${hit.snippet.trimEnd()}\n`).join("\n");
}

async function index(memd, { agent, force }) {
  const report = await memd.sync({ agent, force });
  const waiting = report.waiting_chunks ? `, ${report.waiting_chunks} wait for a vector: ${report.reason}` : "";
  return `${report.files} files, ${report.chunks} chunks; ${report.changed} changed, ${report.removed} removed${waiting}`;
}
