package adapter

import (
	_ "embed" // a plugin
	"time"
)

// cli is the table of the CLIs with a screen of their own. The quiet times are
// the longest that each was seen to stand still in the middle of a turn (while
// the model is silent or a tool sleeps), with a margin; the submit delays are
// those at which none lost the Enter after a paste.
func cli(name string) (Adapter, bool) {
	a := Adapter{
		Name:   name,
		Submit: enter(), SubmitDelay: 150 * time.Millisecond, LongDelay: 300 * time.Millisecond,
		Quiet: 5 * time.Second, ReadyQuiet: time.Second, ReadyOutput: true, ReadyPaste: true,
		Abort: escape(),
	}
	switch name {
	case "claude":
		return claude(a), true
	case "codex":
		return codex(a), true
	case "pi":
		return pi(a), true
	case "gemini":
		return gemini(a), true
	case "qwen":
		return qwen(a), true
	case "opencode":
		return opencode(a), true
	}
	return Adapter{}, false
}

// claude is Claude Code: https://code.claude.com/docs/en/cli-reference. Its
// hooks tell of all but a turn that was interrupted: that stands in its
// transcript. A PermissionRequest comes also where another hook answers it, so
// it means nothing; the notification comes when a person is waited for.
func claude(a Adapter) Adapter {
	a.Versions = "2.1"
	a.StripEnv = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"}
	a.HomeEnv, a.HomeDir = "CLAUDE_CONFIG_DIR", ".claude"
	a.Transcript, a.Format = "projects/*/{id}.jsonl", FormatClaude
	own := []string{"--session-id", "--resume", "-r", "--continue", "-c"}
	a.Setup = Setup{
		Args:   []Arg{{[]string{"--settings", "{files}/claude.json"}, []string{"--settings"}}},
		New:    []Arg{{[]string{"--session-id", "{id}"}, own}},
		Resume: []string{"--resume", "{id}"}, Fork: []string{"--resume", "{id}", "--fork-session"}, Chosen: true,
		Prompt: []string{"--", "{prompt}"},
		Files:  []File{{Name: "claude.json", Hooks: true}},
		Alone:  []string{"-p", "--print", "--version", "-v", "--help", "-h", "mcp", "config", "doctor", "update", "install", "setup-token", "agents", "attach"},
	}
	a.HookTimeout = 5
	a.Hooks = []Hook{
		{Event: "SessionStart"}, {Event: "UserPromptSubmit"}, {Event: "PreToolUse"}, {Event: "PostToolUse"},
		{Event: "Notification"}, {Event: "Stop"}, {Event: "StopFailure"}, {Event: "SessionEnd"},
	}
	a.Rules = hookRules()
	a.Composer = `^[│ ]*[❯>]\s*($|[^\s\dNY]|N[^o]|Y[^e]|\d+[^.\d\s])` // no choice of a dialog's
	a.Sights = []Sight{
		{Pattern: `Quick safety check|Do you trust the files|Yes, I trust this folder`, Means: MeansQuestion, Note: "it asks whether to trust the folder"},
		{Pattern: `Choose the text style|Select login method|Use this API key\?|Security notes:|Press Enter to continue`, Means: MeansQuestion, Note: "it has to be set up first"},
		{Pattern: `Bypass Permissions mode.*accept|Yes, I accept`, Means: MeansQuestion, Note: "it asks whether to run without permissions"},
		{Pattern: `Do you want to (proceed|create|make|allow|run|overwrite)`, Means: MeansApproval},
		{Pattern: `esc to interrupt`, Lines: busyLines, Means: MeansWorking},
	}
	a.Approval = map[string][]string{
		"ask": {"--permission-mode", "default"}, "edits": {"--permission-mode", "acceptEdits"}, "all": {"--dangerously-skip-permissions"},
		"plan": {"--permission-mode", "plan"},
	}
	a.Thinking, a.Tools = []string{"--effort", "{value}"}, []string{"--tools", "{value}"}
	return a
}

// busyLines is how many of the last lines a CLI's own line about its work may
// stand in.
const busyLines = 8

// hookRules are those of the CLIs that have taken over the hooks of Claude Code.
func hookRules() []Rule {
	return []Rule{
		{SignalHook, "SessionStart", MeansIdle},
		{SignalHook, "UserPromptSubmit", MeansWorking}, {SignalHook, "PreToolUse", MeansWorking}, {SignalHook, "PostToolUse", MeansWorking},
		{SignalHook, "Notification:permission_prompt", MeansApproval},
		{SignalHook, "Notification:elicitation_dialog", MeansQuestion},
		{SignalHook, "StopFailure:rate_limit", MeansLimited}, {SignalHook, "StopFailure", MeansError},
		{SignalHook, "Stop", MeansDone},
	}
}

// codex is Codex: https://developers.openai.com/codex/cli/reference. It tells
// of its work by OSC 7501 unasked, and its transcript holds all. Its hooks
// would have to be trusted by the user, in a dialog that takes the first
// prompt: none are put in. The daemon would outlive the pane.
func codex(a Adapter) Adapter {
	a.Versions = "0.171"
	a.Quiet, a.Status = 3*time.Second, true
	a.HomeEnv, a.HomeDir = "CODEX_HOME", ".codex"
	a.Transcript, a.Format, a.OpenFile = "sessions/*/*/*/rollout-*{id}.jsonl", FormatCodex, true
	a.Setup = Setup{
		Args:   []Arg{{[]string{"--no-daemon"}, []string{"--no-daemon", "--remote"}}},
		Resume: []string{"resume", "{id}"}, Fork: []string{"fork", "{id}"},
		Prompt: []string{"--", "{prompt}"},
		Alone: []string{
			"exec", "e", "review", "login", "logout", "mcp", "plugin", "app-server", "remote-control", "completion", "update", "doctor", "sandbox",
			"debug", "apply", "a", "resume", "queue", "archive", "delete", "unarchive", "fork", "cloud", "exec-server", "features", "help", "agents",
			"--version", "-V", "--help", "-h",
		},
	}
	a.Rules = []Rule{{SignalNotify, "Approval requested", MeansApproval}}
	a.Composer = `^[│ ]*[›»]\s*($|[^\s\d]|\d+[^.\d\s])`
	a.Sights = []Sight{
		{Pattern: `Trust and continue|Do you trust the (contents|files)|allow Codex to work in this folder`, Means: MeansQuestion, Note: "it asks whether to trust the folder"},
		{Pattern: `Hooks need review|hooks? .*review`, Means: MeansQuestion, Note: "it asks to review hooks"},
		{Pattern: `Sign in with ChatGPT|Provide your own API key`, Means: MeansQuestion, Note: "it has to be signed in first"},
		{Pattern: `Update available!.*|Update now`, Lines: busyLines, Means: MeansQuestion, Note: "it offers an update"},
		{Pattern: `Would you like to (run|make|grant)|Yes, proceed`, Means: MeansApproval},
		{Pattern: `esc to interrupt`, Lines: busyLines, Means: MeansWorking},
	}
	a.Approval = map[string][]string{
		"ask":   {"-a", "on-request", "-s", "read-only"},
		"edits": {"-a", "on-request", "-s", "workspace-write"},
		"all":   {"--dangerously-bypass-approvals-and-sandbox"},
	}
	a.Sandbox = map[string][]string{
		"read-only": {"-s", "read-only"}, "workspace": {"-s", "workspace-write"}, "off": {"-s", "danger-full-access"},
	}
	a.Thinking = []string{"-c", "model_reasoning_effort={value}"}
	return a
}

// pi is Pi, under both of its names. It tells of its work by OSC 7501 when it
// is asked to; it has no approvals.
func pi(a Adapter) Adapter {
	a.Versions = "0.73, 1.6"
	a.Quiet, a.Status = 3*time.Second, true
	a.HomeEnv, a.HomeDir = "PI_CODING_AGENT_DIR", ".pi/agent"
	a.Transcript, a.Format = "sessions/*/*_{id}.jsonl", FormatPi
	a.Setup = Setup{
		New:    []Arg{{[]string{"--session-id", "{id}"}, []string{"--session-id", "--session", "--continue", "-c", "--resume", "-r", "--no-session", "--fork"}}},
		Resume: []string{"--session", "{id}"}, Fork: []string{"--fork", "{id}"}, Chosen: true,
		Prompt: []string{"--", "{prompt}"}, NotFirst: "@", // a file's name
		Env:   []string{"PI_PROGRAM_STATUS=1"},
		Alone: []string{"-p", "--print", "--mode", "--version", "-v", "--help", "-h", "--list-models", "--export", "install", "remove", "update", "list", "config"},
	}
	a.Thinking, a.Tools = []string{"--thinking", "{value}"}, []string{"--tools", "{value}"}
	a.Sights = []Sight{
		{Pattern: `Trust (this )?project|Trust project folder`, Means: MeansQuestion, Note: "it asks whether to trust the folder"},
	}
	return a
}

// gemini is Gemini CLI: https://geminicli.com/docs/reference/configuration/.
// Its hooks come in by the file of system defaults, the weakest of all its
// settings, which a variable names.
func gemini(a Adapter) Adapter {
	a.Versions = "0.61"
	a.Quiet, a.ReadyQuiet = 10*time.Second, 2*time.Second
	a.SubmitDelay = 300 * time.Millisecond
	a.HomeEnv, a.HomeSub, a.HomeDir = "GEMINI_CLI_HOME", ".gemini", ".gemini"
	a.Transcript, a.Format = "tmp/*/chats/session-*{id8}.jsonl", FormatGemini
	a.Setup = Setup{
		New:    []Arg{{[]string{"--session-id", "{id}"}, []string{"--session-id", "--resume", "-r"}}},
		Resume: []string{"--resume", "{id}"}, Chosen: true,
		Prompt: []string{"--prompt-interactive={prompt}"},
		Env:    []string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH={files}/gemini.json"},
		Files:  []File{{Name: "gemini.json", Hooks: true, Text: `{"hooksConfig":{"enabled":true,"notifications":false}}`}},
		Alone:  []string{"-p", "--prompt", "--version", "-v", "--help", "-h", "mcp", "extensions", "skills", "hooks", "--acp", "--experimental-acp", "--list-sessions"},
	}
	a.HookTimeout = 5000
	a.Hooks = []Hook{
		{Event: "SessionStart"}, {Event: "BeforeAgent"}, {Event: "BeforeTool"}, {Event: "AfterTool"}, {Event: "Notification"}, {Event: "AfterAgent"},
	}
	a.Rules = []Rule{
		{SignalHook, "SessionStart", MeansIdle},
		{SignalHook, "BeforeAgent", MeansWorking}, {SignalHook, "BeforeTool", MeansWorking}, {SignalHook, "AfterTool", MeansWorking},
		{SignalHook, "Notification:ToolPermission", MeansApproval}, {SignalHook, "AfterAgent", MeansDone},
		{SignalTitle, "Action Required", MeansApproval}, {SignalTitle, "Working", MeansWorking}, {SignalTitle, "◇", MeansIdle},
	}
	a.Composer = `^[│ ]*[>*!]\s*($|│$|[^\s\d]|\d+[^.\d\s])`
	a.Sights = []Sight{
		{Pattern: `Do you trust (this folder|the files)|Trust folder`, Means: MeansQuestion, Note: "it asks whether to trust the folder"},
		{Pattern: `How would you like to authenticate|Waiting for auth`, Means: MeansQuestion, Note: "it has to be signed in first"},
		{Pattern: `Usage limit reached for`, Means: MeansLimit, Note: "its usage limit is reached"},
		{Pattern: `Apply this change\?|Allow execution|Do you want to proceed`, Means: MeansApproval},
		{Pattern: `esc to cancel`, Lines: busyLines, Means: MeansWorking},
	}
	a.Approval = map[string][]string{
		"ask": {"--approval-mode", "default"}, "edits": {"--approval-mode", "auto_edit"}, "all": {"--approval-mode", "yolo"},
		"plan": {"--approval-mode", "plan"},
	}
	a.Sandbox = map[string][]string{"on": {"--sandbox"}}
	return a
}

// qwen is Qwen Code: https://qwenlm.github.io/qwen-code-docs/. It grew out of
// Gemini CLI and has the hooks of Claude Code. It loses the Enter both at 0 and
// at 300 ms after several lines.
func qwen(a Adapter) Adapter {
	a.Versions = "0.24"
	a.Quiet, a.ReadyQuiet = 10*time.Second, 2*time.Second
	a.SubmitDelay, a.LongDelay = 50*time.Millisecond, 0
	a.HomeEnv, a.HomeDir = "QWEN_HOME", ".qwen"
	a.Transcript, a.Format = "projects/*/chats/{id}.jsonl", FormatQwen
	a.Setup = Setup{
		New:    []Arg{{[]string{"--session-id", "{id}"}, []string{"--session-id", "--resume", "-r", "--continue", "-c"}}},
		Resume: []string{"--resume", "{id}"}, Fork: []string{"--resume", "{id}", "--fork-session"}, Chosen: true,
		Prompt: []string{"--prompt-interactive={prompt}"},
		Env:    []string{"QWEN_CODE_SYSTEM_DEFAULTS_PATH={files}/qwen.json"},
		Files:  []File{{Name: "qwen.json", Hooks: true}},
		Alone:  []string{"-p", "--prompt", "--version", "-v", "--help", "-h", "mcp", "extensions", "auth", "hooks", "channel", "serve", "--acp"},
	}
	a.HookTimeout = 5000
	a.Hooks = []Hook{
		{Event: "SessionStart"}, {Event: "UserPromptSubmit"}, {Event: "PreToolUse"}, {Event: "PostToolUse"},
		{Event: "Notification"}, {Event: "Stop"}, {Event: "StopFailure"},
	}
	a.Rules = append(hookRules(), Rule{SignalTitle, "✳", MeansApproval}, Rule{SignalTitle, "◐", MeansWorking})
	a.Composer = `^[│ ]*[>*!]\s*($|│$|[^\s\d]|\d+[^.\d\s])`
	a.Sights = []Sight{
		{Pattern: `Do you trust this folder|Trust folder`, Means: MeansQuestion, Note: "it asks whether to trust the folder"},
		{Pattern: `How would you like to authenticate|Select Authentication Method`, Means: MeansQuestion, Note: "it has to be signed in first"},
		{Pattern: `Apply this change\?|Allow execution|Do you want to proceed`, Means: MeansApproval},
		{Pattern: `esc to cancel`, Lines: busyLines, Means: MeansWorking},
	}
	a.Approval = map[string][]string{
		"ask": {"--approval-mode", "default"}, "edits": {"--approval-mode", "auto-edit"}, "all": {"--approval-mode", "yolo"},
		"plan": {"--approval-mode", "plan"},
	}
	a.Sandbox = map[string][]string{"on": {"--sandbox"}}
	return a
}

// opencode is opencode: https://opencode.ai/docs/cli/. A plugin, which is named
// in the settings that a variable holds (they are added to the user's own),
// tells of its turns by `muntin hook` and writes its conversation down.
func opencode(a Adapter) Adapter {
	a.Versions = "1.18"
	a.Quiet, a.ReadyQuiet = 10*time.Second, 2*time.Second
	a.SubmitDelay = 300 * time.Millisecond
	a.Format = FormatRecords
	a.Setup = Setup{
		Resume: []string{"--session", "{id}"}, Fork: []string{"--session", "{id}", "--fork"},
		Prompt: []string{"--prompt={prompt}"},
		Env:    []string{`OPENCODE_CONFIG_CONTENT={"plugin":["{files_url}/opencode.js"]}`, "MUNTIN_HOOK={self}"},
		Files:  []File{{Name: "opencode.js", Text: opencodePlugin}},
		Alone:  []string{"run", "serve", "auth", "acp", "mcp", "models", "export", "import", "stats", "upgrade", "web", "--version", "-v", "--help", "-h", "--mini"},
	}
	a.Hooks = []Hook{
		{Event: "SessionStart"}, {Event: "UserPromptSubmit"}, {Event: "PostToolUse"}, {Event: "Notification"}, {Event: "Retry"},
		{Event: "Interrupted"}, {Event: "Stop"}, {Event: "StopFailure"},
	}
	a.Approval = map[string][]string{"all": {"--auto"}}
	a.Rules = append(hookRules(), Rule{SignalHook, "Retry", MeansLimit}, Rule{SignalHook, "Interrupted", MeansAborted})
	a.Composer = `^╹▀{8}`
	a.Sights = []Sight{
		{Pattern: `Permission required`, Means: MeansApproval},
		{Pattern: `Allow once\s+Allow always\s+Reject`, Means: MeansApproval},
		{Pattern: `\[retrying in .* attempt`, Means: MeansLimit},
		{Pattern: `esc (to )?interrupt`, Lines: busyLines, Means: MeansWorking},
		{Pattern: `ctrl\+p commands`, Lines: busyLines, Means: MeansIdle},
	}
	return a
}

//go:embed opencode.js
var opencodePlugin string
