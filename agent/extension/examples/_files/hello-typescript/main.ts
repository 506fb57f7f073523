import { Extension } from "./muntin.ts";

const ext = new Extension();

ext.gate("tool_call", (call) => {
  if (String(call.args.command ?? "").includes(ext.hello.flags.word)) {
    return { block: true, reason: "the word is not allowed" };
  }
});

ext.gate("input", (prompt) => {
  if (prompt.text === "hi") return { action: "transform", text: "Hello there." };
});

ext.event("agent_settled", () => ext.status("settled"));

ext.tool("hello", async (args, update) => {
  update("Hello…");
  return `Hello, ${args.name}!`;
});

ext.command("hello", async (args) => {
  if (args !== "ask") return "Hello.";
  const answer = await ext.confirm("Say hello?");
  return answer === undefined ? "nobody answered" : answer ? "yes" : "no";
});

ext.run();
