import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Extension } from "./muntin.ts";

type Step = { text: string; done: boolean };
const ext = new Extension();

// A file for each conversation, so that a list outlives this program.
const file = () => join(ext.hello.state, `${ext.hello.session}.json`);

function load(): Step[] {
  try {
    return JSON.parse(readFileSync(file(), "utf8"));
  } catch (e: any) {
    if (e.code === "ENOENT") return [];
    throw e;
  }
}

function save(steps: Step[]) {
  writeFileSync(file() + ".new", JSON.stringify(steps));
  renameSync(file() + ".new", file());
  const open = steps.filter((s) => !s.done).length;
  ext.status(steps.length ? `${steps.length - open}/${steps.length} steps` : "");
}

const show = (steps: Step[]) =>
  steps.map((s, i) => `${i + 1}. [${s.done ? "x" : " "}] ${s.text}`).join("\n") || "The list is empty.";

ext.tool("todo", (args) => {
  let steps = load();
  switch (args.action) {
    case "add":
      if (!args.text) throw new Error("add needs a text");
      steps.push({ text: args.text, done: false });
      break;
    case "done":
      if (!steps[args.number - 1]) throw new Error(`there is no step ${args.number}`);
      steps[args.number - 1].done = true;
      break;
    case "clear":
      steps = [];
  }
  if (args.action !== "list") save(steps);
  return { text: show(steps), details: { steps } };
});

ext.command("todos", () => show(load()));

ext.run();
