// muntin's plugin for opencode (https://opencode.ai/docs/plugins/). It is loaded into
// the process that muntin starts and into no other. It tells muntin of turns by
// `muntin hook`, in the events of Claude Code's hooks, and writes down what muntin
// reads of a conversation, a record of agent/adapter a line.
import { spawn } from "node:child_process"
import { appendFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL(".", import.meta.url))

export const Muntin = async () => {
  const parents = new Map() // of sessions that have one: a helper's
  const roles = new Map() // of messages
  const tools = new Set() // calls that were told
  let root = "" // the session that is worked in
  let busy = false
  let text = "" // the agent's last words
  let failed = false // the turn has ended with more than an end
  let told = Promise.resolve()

  const file = () => `${folder}opencode-${root}.jsonl`
  const record = (r) => {
    try {
      if (root) appendFileSync(file(), JSON.stringify(r) + "\n", { mode: 0o600 })
    } catch {} // a turn goes on without
  }
  const run = (event, input) =>
    new Promise((done) => {
      const child = spawn(process.env.MUNTIN_HOOK, ["hook", event], { stdio: ["pipe", "ignore", "ignore"] })
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(input))
    })
  const hook = (event, more = {}) => {
    const input = { session_id: root, transcript_path: file(), ...more }
    told = told.then(() => run(event, input)) // one after the other: their order counts
  }

  const top = (id) => {
    while (parents.has(id)) id = parents.get(id)
    return id
  }
  // enter goes over to the session of an event; false for a helper's.
  const enter = (id) => {
    if (!id || parents.has(id)) return false
    if (id !== root) {
      root = id
      busy = false
      hook("SessionStart")
    }
    return true
  }
  const words = (input) => {
    for (const key of ["command", "filePath", "path", "pattern", "query", "url", "prompt", "description"]) {
      if (typeof input?.[key] === "string") return input[key].split(/\s+/).join(" ").slice(0, 200)
    }
  }

  const on = {
    "session.created": ({ info }) => {
      if (info.parentID) parents.set(info.id, info.parentID)
      else enter(info.id)
    },
    "session.status": ({ sessionID, status }) => {
      if (!enter(sessionID)) return
      if (status.type === "busy" && !busy) {
        busy = true
        failed = false
        text = ""
        hook("UserPromptSubmit")
      }
      if (status.type === "retry") {
        hook("Retry", { message: `${status.message}, retry at ${new Date(status.next).toISOString()}` })
      }
    },
    "session.idle": ({ sessionID }) => {
      if (!enter(sessionID)) return
      busy = false
      if (failed) return
      record({ kind: "turn", means: "done" })
      hook("Stop", { last_assistant_message: text })
    },
    "session.error": ({ sessionID, error }) => {
      if (!enter(sessionID) || failed) return
      failed = true
      if (error?.name === "MessageAbortedError") {
        hook("Interrupted")
        return
      }
      hook("StopFailure", { error: error?.name ?? "unknown", message: error?.data?.message ?? "" })
    },
    "message.updated": ({ info }) => {
      roles.set(info.id, info.role)
    },
    "message.part.updated": ({ part }) => {
      if (part.type === "step-finish") { // a helper's too: it is the turn's
        record({
          kind: "usage",
          usage: {
            input: part.tokens.input, output: part.tokens.output + part.tokens.reasoning,
            cache_read: part.tokens.cache.read, cache_write: part.tokens.cache.write, cost: part.cost,
          },
        })
        return
      }
      if (!enter(part.sessionID)) return
      const role = roles.get(part.messageID)
      if (part.type === "text" && role === "user" && !part.synthetic) record({ kind: "prompt", text: part.text })
      if (part.type === "text" && role === "assistant" && part.time?.end) {
        text = part.text
        record({ kind: "text", text })
      }
      if (part.type === "tool" && part.state.status === "running" && !tools.has(part.callID)) {
        tools.add(part.callID)
        record({ kind: "tool", tool: part.tool, text: words(part.state.input) })
      }
    },
    "permission.asked": ({ sessionID, permission, patterns }) => {
      enter(top(sessionID))
      hook("Notification", { notification_type: "permission_prompt", message: `${permission}: ${(patterns ?? []).join(" ")}` })
    },
    "permission.replied": () => hook("PostToolUse"),
    "question.asked": ({ sessionID, questions }) => {
      enter(top(sessionID))
      hook("Notification", { notification_type: "elicitation_dialog", message: questions?.[0]?.question ?? "" })
    },
    "question.replied": () => hook("PostToolUse"),
    "question.rejected": () => hook("PostToolUse"),
  }
  return {
    event: async ({ event }) => {
      try {
        on[event.type]?.(event.properties)
      } catch {} // an event in another form than is known must not stop the agent
    },
  }
}
