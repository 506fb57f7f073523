import { Extension } from "./muntin.ts";

const ext = new Extension();
const looks = ["read", "grep", "find", "ls", "questionnaire"];
const harmless = /^\s*(cat|head|tail|ls|find|grep|rg|wc|pwd|tree|file|stat|git (status|log|diff|show|blame|branch))\b[^>;&|`$]*$/;
let planning: boolean | undefined;

const on = () => (planning ??= Boolean(ext.hello.flags?.start));

ext.command("plan", (text) => {
  planning = text ? true : !on();
  ext.status(planning ? "plan mode" : "");
  if (text) return { text: "Plan mode is on.", prompt: text };
  return planning ? "Plan mode is on: nothing is changed. /plan leaves it." : "Plan mode is off.";
});

ext.gate("before_start", () => {
  if (!on()) return;
  return {
    append:
      "[Plan mode: read what you need, change nothing. Then write a numbered plan: which files, which changes, how to check them. Stop there.]",
  };
});

// The model is not told of tools that it may not use; bash stays, for looking.
ext.gate("request", (r) => {
  if (!on()) return;
  return { tools: r.tools.map((t: { name: string }) => t.name).filter((n: string) => looks.includes(n) || n === "bash") };
});

ext.gate("tool_call", (call) => {
  if (!on() || looks.includes(call.toolName)) return;
  if (call.toolName === "bash" && harmless.test(String(call.args.command))) return;
  return { block: true, reason: "Plan mode: nothing may be changed. Finish the plan; the user leaves plan mode with /plan." };
});

ext.run();
