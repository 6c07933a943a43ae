// The plugin: memd in the memory slot of OpenClaw. See README.md.

import { Client } from "memd-client";

import { appendTool } from "./append.js";
import { registerCommands } from "./commands.js";
import { Conversations } from "./conversation.js";
import { flushPlan, promptSection } from "./prompts.js";
import { createRuntime } from "./runtime.js";
import { getTool, searchTool } from "./tools.js";

export default {
  id: "memd",
  name: "memd",
  description: "Long-term memory search by memd.",
  kind: "memory",
  register(api) {
    const { socket, timeoutMs, appendCommand } = api.pluginConfig ?? {};
    const memd = new Client({ socket, timeoutMs });
    const conversations = new Conversations(api);
    api.registerMemoryCapability({
      deterministicRecallToolName: "memory_search",
      promptBuilder: promptSection,
      flushPlanResolver: flushPlan,
      runtime: createRuntime(memd, conversations),
    });
    api.registerTool((context) => searchTool(memd, conversations, context), { names: ["memory_search"] });
    api.registerTool((context) => getTool(memd, conversations, context), { names: ["memory_get"] });
    if (appendCommand) {
      api.registerTool((context) => appendTool(appendCommand, conversations, context), { names: ["memory_append"] });
    }
    api.registerCli(({ program }) => registerCommands(program, memd), {
      descriptors: [{ name: "memory", description: "Search memd, and see how it is", hasSubcommands: true }],
    });
  },
};
