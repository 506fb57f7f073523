package adapter_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"muntin/agent/adapter"
)

func TestPrepare(t *testing.T) {
	t.Parallel()
	const id = "01a22d78-f005-7bc1-a1f5-212d7120857f"
	tests := map[string]struct {
		argv   []string
		talk   string
		fork   bool
		want   string // {new}: an id that was made
		chosen bool
	}{
		"claude":               {[]string{"claude", "--model", "x"}, "", false, "claude --session-id {new} --settings /f/claude.json --model x", true},
		"claude again":         {[]string{"claude"}, id, false, "claude --resume " + id + " --settings /f/claude.json", true},
		"claude fork":          {[]string{"claude"}, id, true, "claude --resume " + id + " --fork-session --settings /f/claude.json", false},
		"claude, own settings": {[]string{"claude", "--settings=mine.json"}, "", false, "claude --session-id {new} --settings=mine.json", true},
		"claude, own session":  {[]string{"claude", "-c"}, "", false, "claude --settings /f/claude.json -c", false},
		"claude -p":            {[]string{"claude", "-p", "hello"}, "", false, "claude -p hello", false},
		"claude in env":        {[]string{"env", "A=1", "claude"}, "", false, "env A=1 claude --session-id {new} --settings /f/claude.json", true},
		"codex":                {[]string{"codex", "-m", "x"}, "", false, "codex --no-daemon -m x", false},
		"codex again":          {[]string{"codex", "-m", "x"}, id, false, "codex resume " + id + " --no-daemon -m x", true},
		"codex fork":           {[]string{"codex"}, id, true, "codex fork " + id + " --no-daemon", false},
		"codex exec":           {[]string{"codex", "exec", "hello"}, id, false, "codex exec hello", false},
		"pi again":             {[]string{"pi"}, id, false, "pi --session " + id, true},
		"gemini":               {[]string{"gemini"}, "", false, "gemini --session-id {new}", true},
		"bash":                 {[]string{"bash", "-i"}, "", false, "bash -i", false},
	}
	for name, test := range tests {
		ad := adapter.For(test.argv)
		got, err := ad.Prepare(adapter.Launch{
			Argv: test.argv, Env: []string{"HOME=/h"}, WorkDir: "/w", FilesDir: "/f", Self: "/bin/muntin", Conversation: test.talk, Fork: test.fork,
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := strings.ReplaceAll(test.want, "{new}", got.Conversation)
		if strings.Join(got.Argv, " ") != want || test.chosen != (got.Conversation != "") {
			t.Errorf("%s: %q, conversation %q; want %q", name, got.Argv, got.Conversation, test.want)
		}
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	const id = "01a22d78-f005-7bc1-a1f5-212d7120857f"
	tests := map[string]struct {
		argv string
		l    adapter.Launch
		say  string // the first prompt
		want string // the command line, or how the error begins
	}{
		"claude": {
			"claude --model x", adapter.Launch{Wants: adapter.Wants{Approval: "edits", Thinking: "high", Tools: []string{"Bash", "Read"}}}, "-a b",
			"claude --session-id {new} --settings /f/claude.json --permission-mode acceptEdits --effort high --tools Bash,Read --model x -- -a b",
		},
		"claude, said already": {"claude --permission-mode plan", adapter.Launch{Wants: adapter.Wants{Approval: "edits"}}, "", "claude --session-id {new} --settings /f/claude.json --permission-mode plan"},
		"claude goes on":       {"claude", adapter.Launch{Conversation: id}, "", "claude --resume " + id + " --settings /f/claude.json"},
		"claude sandbox":       {"claude", adapter.Launch{Wants: adapter.Wants{Sandbox: "off"}}, "", `adapter claude: it has no words for the sandbox "off"`},
		"claude -p":            {"claude -p x", adapter.Launch{Wants: adapter.Wants{Approval: "ask"}}, "", "adapter claude: the command is no conversation"},
		"claude, a prompt":     {"claude hello", adapter.Launch{}, "x", "claude --session-id {new} --settings /f/claude.json hello"},
		"codex": {
			"codex -c a=b", adapter.Launch{Wants: adapter.Wants{Approval: "ask", Sandbox: "workspace", Thinking: "low"}}, "resume",
			"codex --no-daemon -a on-request -s workspace-write -c model_reasoning_effort=low -c a=b -- resume",
		},
		"codex tools":     {"codex", adapter.Launch{Wants: adapter.Wants{Tools: []string{"x"}}}, "", "adapter codex: it has no words for tools"},
		"gemini fork":     {"gemini", adapter.Launch{Conversation: id, Fork: true}, "", "adapter gemini: it has no words to fork a conversation"},
		"gemini":          {"gemini", adapter.Launch{Wants: adapter.Wants{Approval: "all"}}, "-x", "gemini --session-id {new} --approval-mode yolo --prompt-interactive=-x"},
		"gemini unknown":  {"gemini", adapter.Launch{Wants: adapter.Wants{Approval: "some"}}, "", `adapter gemini: "some" is no approval mode of it: it has all, ask, edits, plan`},
		"qwen fork":       {"qwen", adapter.Launch{Conversation: id, Fork: true}, "", "qwen --resume " + id + " --fork-session"},
		"opencode fork":   {"opencode", adapter.Launch{Conversation: "ses_1", Fork: true}, "", "opencode --session ses_1 --fork"},
		"nothing to fork": {"pi", adapter.Launch{Fork: true}, "", "adapter pi: no conversation to fork"},
		"pi":              {"pi", adapter.Launch{Wants: adapter.Wants{Thinking: "high"}}, "-x", "pi --session-id {new} --thinking high -- -x"},
		"pi, a file":      {"pi", adapter.Launch{}, "@x", "pi --session-id {new}"},
		"too long":        {"claude", adapter.Launch{}, strings.Repeat("x", 100<<10), "claude --session-id {new} --settings /f/claude.json"},
		"a shell":         {"bash", adapter.Launch{Wants: adapter.Wants{Approval: "all"}}, "ls", `adapter shell: it has no words for the approval mode "all"`},
	}
	for name, test := range tests {
		test.l.Argv, test.l.Env, test.l.FilesDir, test.l.Self = strings.Fields(test.argv), []string{"HOME=/h"}, "/f", "/bin/muntin"
		ad := adapter.For(test.l.Argv)
		got, err := ad.Prepare(test.l)
		if argv, ok := ad.Prompted(got, test.l.Argv, test.say); ok && err == nil {
			got.Argv = argv
		}
		line := strings.Join(got.Argv, " ")
		if err != nil {
			line = err.Error()
		}
		want := strings.ReplaceAll(test.want, "{new}", got.Conversation)
		if line != want && (err == nil || !strings.HasPrefix(line, want)) {
			t.Errorf("%s:\n%s\nwant\n%s", name, line, want)
		}
	}
}

// TestHookSettings has a shell run what the settings say, from a path with all
// that a shell acts on.
func TestHookSettings(t *testing.T) {
	t.Parallel()
	self := t.TempDir() + `/it's $HOME "a" muntin`
	for _, name := range []string{"claude", "gemini", "qwen"} {
		ad, _ := adapter.Lookup(name)
		start, err := ad.Prepare(adapter.Launch{Argv: []string{name}, FilesDir: "/f", Self: self})
		if err != nil {
			t.Fatal(err)
		}
		if len(start.Files) != 1 || start.Files[0].Name != "/f/"+name+".json" {
			t.Fatalf("%s: files %+v", name, start.Files)
		}
		var settings struct {
			Hooks map[string][]struct {
				Hooks []struct{ Type, Command string }
			}
		}
		if err := json.Unmarshal([]byte(start.Files[0].Text), &settings); err != nil {
			t.Fatal(err)
		}
		for _, h := range ad.Hooks {
			command := settings.Hooks[h.Event][0].Hooks[0].Command
			out, err := exec.Command("sh", "-c", "printf '%s\\n' "+command).Output()
			if err != nil || string(out) != self+"\nhook\n"+h.Event+"\n" {
				t.Errorf("%s: %s is %q to a shell (%v)", name, command, out, err)
			}
		}
	}
	ad, _ := adapter.Lookup("gemini")
	start, err := ad.Prepare(adapter.Launch{Argv: []string{"gemini"}, FilesDir: "/f", Self: self, Env: []string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(start.Env, []string{"GEMINI_CLI_SYSTEM_DEFAULTS_PATH=/mine"}) {
		t.Errorf("a variable of the user's was changed: %q", start.Env)
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	const id = "01a22d78-f005-7bc1-a1f5-212d7120857f"
	tests := []struct {
		name string
		env  []string
		want string
	}{
		{"claude", []string{"HOME=/h"}, "/h/.claude/projects/*/" + id + ".jsonl"},
		{"claude", []string{"HOME=/h", "CLAUDE_CONFIG_DIR=/c"}, "/c/projects/*/" + id + ".jsonl"},
		{"codex", []string{"CODEX_HOME=/a", "CODEX_HOME=/b"}, "/b/sessions/*/*/*/rollout-*" + id + ".jsonl"},
		{"gemini", []string{"HOME=/h", "GEMINI_CLI_HOME=/g"}, "/g/.gemini/tmp/*/chats/session-*01a22d78.jsonl"},
		{"opencode", []string{"HOME=/h"}, ""}, // its plugin names the file
	}
	for _, test := range tests {
		ad, _ := adapter.Lookup(test.name)
		if got := ad.Transcripts(test.env, id); got != test.want {
			t.Errorf("%s %q: %q, want %q", test.name, test.env, got, test.want)
		}
	}
	for path, want := range map[string]string{
		"/x/rollout-2026-11-30T17-20-30-" + id + ".jsonl": id, "/x/session-2026-01a22d78.jsonl": "", "/x/01a22d78_f005-7bc1-a1f5-212d7120857f.jsonl": "", "": "",
	} {
		if got := adapter.ConversationOf(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if made := adapter.NewConversation(); adapter.ConversationOf(made+".jsonl") != made || made[14] != '4' {
		t.Errorf("%q is no UUID of version 4", made)
	}
}

func TestReadHook(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ event, input, signal, note string }{
		"stop":         {"Stop", `{"session_id":"s","last_assistant_message":"done"}`, "Stop", "done"},
		"notification": {"Notification", `{"notification_type":"permission_prompt","message":"may I"}`, "Notification:permission_prompt", "may I"},
		"failure":      {"StopFailure", `{"error":"rate_limit","last_assistant_message":"429"}`, "StopFailure:rate_limit", "429"},
		"odd types":    {"Stop", `{"session_id":7,"error":{"a":1},"message":["x"]}`, "Stop", ""},
		"no JSON":      {"Stop", `hello`, "Stop", ""},
		"nothing":      {"Stop", ``, "Stop", ""},
		"no end":       {"Stop", `{"session_id":"s"`, "Stop", ""},
	}
	for name, test := range tests {
		in := adapter.ReadHook(test.event, strings.NewReader(test.input))
		if in.Signal() != test.signal || in.Note() != test.note {
			t.Errorf("%s: %q %q, want %q %q", name, in.Signal(), in.Note(), test.signal, test.note)
		}
	}
	long := adapter.ReadHook("Stop", strings.NewReader(`{"last_assistant_message":"`+strings.Repeat("é", 1<<20)+`"}`))
	if n := len(long.Last); n == 0 || n > 4<<10 {
		t.Errorf("a long text has %d bytes", n)
	}
}

func TestHookRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, signal string
		want         adapter.Meaning
	}{
		{"claude", "SessionStart", adapter.MeansIdle}, {"claude", "UserPromptSubmit", adapter.MeansWorking},
		{"claude", "Notification:permission_prompt", adapter.MeansApproval}, {"claude", "Notification:idle_prompt", adapter.MeansNothing},
		{"claude", "Stop", adapter.MeansDone}, {"claude", "StopFailure:rate_limit", adapter.MeansLimited},
		{"claude", "StopFailure:authentication_failed", adapter.MeansError}, {"claude", "SessionEnd", adapter.MeansNothing},
		{"gemini", "Notification:ToolPermission", adapter.MeansApproval}, {"gemini", "AfterAgent", adapter.MeansDone},
		{"qwen", "PostToolUse", adapter.MeansWorking}, {"codex", "Stop", adapter.MeansNothing},
	}
	for _, test := range tests {
		ad, _ := adapter.Lookup(test.name)
		if got := ad.Means(adapter.SignalHook, test.signal); got != test.want {
			t.Errorf("%s, %s: %q, want %q", test.name, test.signal, got, test.want)
		}
	}
}

func TestSee(t *testing.T) {
	t.Parallel()
	dialog := []string{"", " Do you want to create one.txt?", " ❯ 1. Yes", "   2. No", ""}
	above := append(append([]string{"Do you want to create one.txt?", "esc to interrupt"}, strings.Split(strings.Repeat("a line\n", 30), "\n")...), "❯ ", "? for shortcuts")
	tests := []struct {
		name  string
		lines []string
		want  adapter.Meaning
	}{
		{"claude", dialog, adapter.MeansApproval},
		{"claude", above, adapter.MeansNothing},
		{"claude", []string{"Do you trust the files in this folder?", "❯ No, exit"}, adapter.MeansQuestion},
		{"claude", []string{"✻ Baking… (esc to interrupt)", "❯ "}, adapter.MeansWorking},
		{"claude", []string{"Do you want to create one.txt?", "❯ yes it did", "? for shortcuts"}, adapter.MeansNothing}, // said, and the composer below
		{"claude", []string{"❯ Do it", "● Done.", "────", " Do you want to make this edit?", "❯ 1. Yes", "  2. No"}, adapter.MeansApproval},
		{"codex", []string{"Would you like to run it?", "› ", "gpt-5"}, adapter.MeansNothing},
		{"codex", []string{"› go", "Would you like to run the following command?", "› 1. Yes, proceed (y)"}, adapter.MeansApproval},
		{"opencode", []string{"△ Permission required", "╹▀▀▀▀▀▀▀▀▀▀▀", "ctrl+p commands"}, adapter.MeansIdle},
		{"codex", []string{"Trust and continue"}, adapter.MeansQuestion},
		{"gemini", []string{"Usage limit reached for gemini-2.5-pro.", "1. Keep trying"}, adapter.MeansLimit},
		{"opencode", []string{"△ Permission required"}, adapter.MeansApproval},
		{"shell", dialog, adapter.MeansNothing},
		{"claude", nil, adapter.MeansNothing},
	}
	for _, test := range tests {
		ad, _ := adapter.Lookup(test.name)
		if got := ad.See(test.lines, "").Sight; got.Means != test.want {
			t.Errorf("%s: %q, want %q, of %q", test.name, got.Means, test.want, test.lines)
		}
	}
	own := adapter.Adapter{Sights: []adapter.Sight{{Pattern: `Allow\?`, Means: adapter.MeansApproval}}}
	wrapped := []string{"● You may be asked Allow? by", "  the program", "> "}
	if got := own.See(wrapped, "well: You may be asked Allow? by the\nprogram"); got.Sight.Means != adapter.MeansNothing || got.Confidence != adapter.Medium {
		t.Errorf("what was said is taken for a dialog: %+v", got)
	}
	if got := own.See([]string{"Allow? y/n"}, "something else"); got.Sight.Means != adapter.MeansApproval {
		t.Errorf("a dialog is taken for the transcript: %+v", got)
	}
	for _, name := range adapter.Names() {
		ad, _ := adapter.Lookup(name)
		if err := ad.Versions.Check(); err != nil {
			t.Error(err)
		}
		if err := ad.Check(); err != nil {
			t.Error(err)
		}
	}
}
