// memd: written by `memd-ctl hook install --client opencode`, and removed by `memd-ctl hook uninstall --client opencode`.
import { spawn } from "node:child_process"

const COMMANDS = {}
const LIMIT_MS = 5000

// What a hook of memd adds to the conversation; "" if it has nothing, fails or takes too long.
function added(hook, input) {
  const [program, ...rest] = COMMANDS[hook]
  return new Promise((resolve) => {
    const child = spawn(program, rest, { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS)
    const pieces = []
    child.stdout.on("data", (piece) => pieces.push(piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(Buffer.concat(pieces).toString()).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(input))
  })
}

export const Memd = async ({ client }) => ({
  "chat.message": async ({ sessionID }, { message, parts }) => {
    const said = parts.filter((part) => part.type === "text" && !part.synthetic)
    const last = parts.at(-1)
    if (said.length === 0) return
    const input = { session_id: sessionID, prompt: said.map((part) => part.text).join("\n") }
    const before = await client.session.messages({ path: { id: sessionID } }).catch(() => ({}))
    const isFirst = !before.data?.some((one) => one.info.role === "assistant")
    const texts = await Promise.all([isFirst ? added("session-start", input) : "", added("user-prompt", input)])
    for (const [number, text] of texts.entries()) {
      if (!text) continue
      // An id that is sorted behind those of the message.
      const id = `${last.id}memd${number}`
      parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
    }
  },
  "experimental.session.compacting": async ({ sessionID }) => {
    await added("pre-compact", { session_id: sessionID })
  },
})
