// Runs a list of commands on Pi's SessionManager and prints what it then sees.
//   node session.mjs MODULE FILE COMMANDS   (COMMANDS: a JSON array; {"do": method, "args": [...]})
// An argument "$n" is what command n returned; "$leaf" is the leaf.
import { pathToFileURL } from "node:url";
import { dirname, join } from "node:path";

const [modules, file, commands] = process.argv.slice(2);
const core = join(modules, "@earendil-works/pi-coding-agent/dist/core/session-manager.js");
const { SessionManager } = await import(pathToFileURL(core).href);
const s = SessionManager.open(file);
const results = [];
for (const c of JSON.parse(commands)) {
	const args = (c.args ?? []).map((a) => {
		if (a === "$leaf") return s.getLeafId();
		return typeof a === "string" && /^\$\d+$/.test(a) ? results[Number(a.slice(1))] : a;
	});
	results.push(s[c.do](...args));
}
const text = (content) => (typeof content === "string" ? content : content.filter((b) => b.type === "text").map((b) => b.text).join(""));
const messages = [];
for (const m of s.buildSessionContext().messages) {
	if (m.role === "system" || m.role === "bashExecution") continue;
	if (m.role === "compactionSummary" || m.role === "branchSummary") messages.push("summary:" + m.summary);
	else messages.push((m.role === "custom" ? "user" : m.role) + ":" + text(m.content));
}
const entries = s.getEntries();
const labels = {};
for (const e of entries) if (s.getLabel(e.id)) labels[e.id] = s.getLabel(e.id);
const listed = await SessionManager.list(s.getCwd(), dirname(file));
const cost = entries.reduce((sum, e) => sum + (e.type === "message" && e.message.role === "assistant" ? e.message.usage.cost.total : 0), 0);
console.log(JSON.stringify({
	messages, labels, cost,
	entries: entries.map((e) => [e.id, e.parentId ?? "", e.type]),
	leaf: s.getLeafId() ?? "", name: s.getSessionName() ?? "", id: s.getSessionId(),
	model: s.buildSessionContext().model, listed: listed.map((i) => [i.id, i.messageCount]), results,
}));
