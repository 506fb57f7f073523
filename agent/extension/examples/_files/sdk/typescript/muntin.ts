// Extensions for muntin in TypeScript: copy this file beside yours. Node 22.6 runs it
// as it is, without a build: node --experimental-strip-types main.ts. The protocol is
// described in docs/extensions.md of muntin.
//
//   import { Extension } from "./muntin.ts";
//   const ext = new Extension();
//   ext.gate("tool_call", async (call) => {
//     if (String(call.args.command).includes("rm -rf")) return { block: true, reason: "not that" };
//   });
//   ext.tool("greet", async (args) => `Hello, ${args.name}`);
//   ext.run();
//
// A handler that throws fails its request: a gate that fails counts as a no.
import { createInterface } from "node:readline";

type Params = Record<string, any>;
type Update = (part: string | Params) => void;
type Handler = (params: Params, update: Update, signal: AbortSignal) => unknown;

export class Extension {
  hello: Params = {}; // what muntin said at the start: dir, state, session, flags, ...
  #handlers = new Map<string, Handler>();
  #answers = new Map<number, (frame: Params) => void>();
  #cancels = new Map<number, AbortController>();
  #last = 0;

  // What the extension does.

  gate(name: string, f: (params: Params) => unknown) {
    this.#handlers.set(name, f);
  }
  tool(name: string, f: (args: Params, update: Update, signal: AbortSignal) => unknown) {
    this.#handlers.set("tool " + name, (p, update, signal) => f(p.args, update, signal));
  }
  command(name: string, f: (args: string) => unknown) {
    this.#handlers.set("command " + name, (p) => f(p.args ?? ""));
  }
  event(name: string, f: (params: Params) => unknown) {
    this.#handlers.set("event " + name, f);
  }
  provider(f: (request: Params, emit: Update, signal: AbortSignal) => unknown) {
    this.#handlers.set("provider", f);
  }

  // What the extension may say.

  notify(text: string, level = "info") {
    this.#send({ type: "event", method: "notify", params: { text, level } });
  }
  status(text: string) {
    this.#send({ type: "event", method: "status", params: { text } });
  }
  send(text: string, as: "followup" | "steer" = "followup") {
    this.#send({ type: "event", method: "send", params: { text, as } });
  }
  // Each gives undefined when nobody answered.
  async confirm(title: string, text = ""): Promise<boolean | undefined> {
    const a = await this.ask({ kind: "confirm", title, text });
    return a.answered ? Boolean(a.confirmed) : undefined;
  }
  async select(title: string, options: string[]): Promise<string | undefined> {
    const a = await this.ask({ kind: "select", title, options });
    return a.answered ? a.value : undefined;
  }
  async input(title: string, value = ""): Promise<string | undefined> {
    const a = await this.ask({ kind: "input", title, default: value });
    return a.answered ? (a.value ?? "") : undefined;
  }
  ask(question: Params): Promise<Params> {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#answers.set(id, (f) => (f.error ? reject(new Error(f.error)) : resolve(f.result ?? {})));
      this.#send({ type: "request", id, method: "ask", params: question });
    });
  }

  // How it works.

  run() {
    console.log = console.error; // what is printed goes to the log
    const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
    lines.on("line", (line) => {
      try {
        this.#frame(JSON.parse(line));
      } catch (e) {
        console.error(e);
      }
    });
    lines.on("close", () => process.exit(0));
  }

  #frame(f: Params) {
    switch (f.type) {
      case "hello":
        this.hello = f.params;
        this.#send({ type: "ready", params: { protocol: 1 } });
        break;
      case "request":
        void this.#answer(f);
        break;
      case "response": {
        const waiting = this.#answers.get(f.id);
        this.#answers.delete(f.id);
        waiting?.(f);
        break;
      }
      case "cancel":
        this.#cancels.get(f.id)?.abort();
        break;
      case "event":
        Promise.resolve(f.params ?? {})
          .then((p) => this.#handlers.get("event " + f.method)?.(p, () => {}, new AbortController().signal))
          .catch((e) => console.error(e));
    }
  }

  async #answer(f: Params) {
    const params = f.params ?? {};
    const key = f.method === "tool" ? "tool " + params.toolName : f.method === "command" ? "command " + params.name : f.method;
    const cancel = new AbortController();
    this.#cancels.set(f.id, cancel);
    try {
      const handler = this.#handlers.get(key);
      if (!handler) throw new Error("no handler for " + key);
      const update: Update = (part) =>
        this.#send({ type: "update", id: f.id, params: typeof part === "string" ? { text: part } : part });
      const result = await handler(params, update, cancel.signal);
      this.#send({ type: "response", id: f.id, result: typeof result === "string" ? { text: result } : (result ?? {}) });
    } catch (e) {
      console.error(e);
      this.#send({ type: "response", id: f.id, error: e instanceof Error ? e.message : String(e) });
    } finally {
      this.#cancels.delete(f.id);
    }
  }

  #send(frame: Params) {
    process.stdout.write(JSON.stringify(frame) + "\n");
  }
}
