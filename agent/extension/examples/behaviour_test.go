package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent"
	"muntin/agent/extension"
	"muntin/agent/llm"
)

func TestPermissionGate(t *testing.T) {
	t.Parallel()
	p := &person{answers: no}
	r := host(t, "permission-gate", p)
	if r == nil {
		return
	}
	if why := r.call(t, "bash", `{"command":"ls -la"}`); why != "" || len(p.asked) > 0 {
		t.Errorf("%q, asked %v", why, p.asked)
	}
	for _, command := range []string{"rm -rf build", "sudo true", "git push --force", "curl x | sh", "git reset --hard"} {
		if why := r.call(t, "bash", `{"command":"`+command+`"}`); !strings.Contains(why, "does not allow") {
			t.Errorf("%s: %q", command, why)
		}
	}
	if err := r.UserBash(t.Context(), extension.UserBash{Command: "rm -r x"}); err == nil {
		t.Error("the user's own command was not asked about")
	}
	p.answers = yes
	if why := r.call(t, "bash", `{"command":"rm -rf build"}`); why != "" {
		t.Error(why)
	}
	p.answers = nil // nobody there
	if why := r.call(t, "bash", `{"command":"rm -rf build"}`); why == "" {
		t.Error("allowed although nobody answered")
	}
}

func TestProtectedPaths(t *testing.T) {
	t.Parallel()
	r := host(t, "protected-paths", nil)
	if r == nil {
		return
	}
	for args, blocked := range map[string]bool{
		`{"path":"src/.env","content":"x"}`: true, `{"path":"main.go","content":".env"}`: false, `{"path":"a/.git/config","content":""}`: true,
	} {
		if why := r.call(t, "write", args); (why != "") != blocked {
			t.Errorf("write %s: %q", args, why)
		}
	}
	for args, blocked := range map[string]bool{
		`{"command":"echo x > .env"}`: true, `{"command":"cat .env"}`: false, `{"command":"rm -f k/id_rsa"}`: true,
	} {
		if why := r.call(t, "bash", args); (why != "") != blocked {
			t.Errorf("bash %s: %q", args, why)
		}
	}
	if why := r.call(t, "read", `{"path":".env"}`); why != "" {
		t.Errorf("reading is not its business: %s", why)
	}
}

func TestConfirmDestructive(t *testing.T) {
	t.Parallel()
	p := &person{answers: no}
	r := host(t, "confirm-destructive", p)
	if r == nil {
		return
	}
	if err := r.Switch(t.Context(), extension.Switch{Reason: "new"}); err == nil || !strings.Contains(err.Error(), "stay") {
		t.Error(err)
	}
	p.answers = yes
	if err := r.Switch(t.Context(), extension.Switch{Reason: "fork", Target: "x"}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.said(), "(fork)") {
		t.Error(p.said())
	}
}

func TestDirtyRepoGuard(t *testing.T) {
	t.Parallel()
	p := &person{answers: no}
	r := host(t, "dirty-repo-guard", p)
	if r == nil {
		return
	}
	if out, err := exec.Command("git", "init", "-q", r.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := r.Switch(t.Context(), extension.Switch{Reason: "new"}); err != nil || len(p.asked) > 0 {
		t.Errorf("clean: %v, asked %v", err, p.asked)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Switch(t.Context(), extension.Switch{Reason: "new"}); err == nil || !strings.Contains(err.Error(), "1 files") {
		t.Errorf("dirty: %v", err)
	}
	p.answers = yes
	if err := r.Switch(t.Context(), extension.Switch{Reason: "new"}); err != nil {
		t.Error(err)
	}
}

func TestPlanMode(t *testing.T) {
	t.Parallel()
	r := host(t, "plan-mode", &person{})
	if r == nil {
		return
	}
	if why := r.call(t, "write", `{"path":"x","content":""}`); why != "" {
		t.Errorf("before: %s", why)
	}
	if got := r.command(t, "/plan a better parser"); got.Prompt != "a better parser" {
		t.Errorf("%+v", got)
	}
	for args, blocked := range map[string]bool{`{"command":"git log --oneline"}`: false, `{"command":"cat x > y"}`: true, `{"command":"make"}`: true} {
		if why := r.call(t, "bash", args); (why != "") != blocked {
			t.Errorf("%s: %q", args, why)
		}
	}
	if why := r.call(t, "edit", `{"path":"x"}`); why == "" {
		t.Error("edit is allowed")
	}
	req, err := r.Request(t.Context(), llm.Request{Tools: []llm.Tool{{Name: "read"}, {Name: "bash"}, {Name: "write"}}})
	if err != nil || len(req.Tools) != 2 {
		t.Errorf("%+v, %v", req.Tools, err)
	}
	if _, added, err := r.BeforeStart(t.Context(), extension.Start{Prompt: "x"}); err != nil || !strings.Contains(added, "Plan mode") {
		t.Errorf("%q, %v", added, err)
	}
	r.command(t, "/plan")
	if why := r.call(t, "write", `{"path":"x","content":""}`); why != "" {
		t.Errorf("after: %s", why)
	}
}

func TestTodo(t *testing.T) {
	t.Parallel()
	r := host(t, "todo", &person{})
	if r == nil {
		return
	}
	for _, c := range [][2]string{
		{`{"action":"list"}`, "empty"}, {`{"action":"add","text":"first"}`, "1. [ ] first"}, {`{"action":"add","text":"second"}`, "2. [ ] second"},
		{`{"action":"done","number":1}`, "1. [x] first"},
	} {
		if text, err := r.tool(t, "todo", c[0], nil); err != nil || !strings.Contains(text, c[1]) {
			t.Errorf("%s: %q, %v", c[0], text, err)
		}
	}
	if _, err := r.tool(t, "todo", `{"action":"done","number":9}`, nil); err == nil || !strings.Contains(err.Error(), "no step 9") {
		t.Error(err)
	}
	if err := r.Reload(r.Extensions()); err != nil { // another program, the same list
		t.Fatal(err)
	}
	if got := r.command(t, "/todos"); !strings.Contains(got.Text, "1. [x] first\n2. [ ] second") {
		t.Errorf("%+v", got)
	}
}

func TestQuestionnaire(t *testing.T) {
	t.Parallel()
	p := &person{answers: func(q extension.Question) extension.Answer {
		switch {
		case q.Kind == extension.AskSelect && q.Title == "Which?":
			return extension.Answer{Answered: true, Value: q.Options[1]}
		case q.Kind == extension.AskSelect:
			return extension.Answer{Answered: true, Value: "something else…"}
		}
		return extension.Answer{Answered: true, Value: "typed"}
	}}
	r := host(t, "questionnaire", p)
	if r == nil {
		return
	}
	const args = `{"questions":[{"question":"Which?","options":["a","b"]},{"question":"Why?"},{"question":"How?","options":["c"]}]}`
	if text, err := r.tool(t, "questionnaire", args, nil); err != nil || text != "Which?\n  b\nWhy?\n  typed\nHow?\n  typed" {
		t.Errorf("%q, %v", text, err)
	}
	alone := host(t, "questionnaire", nil)
	if text, err := alone.tool(t, "questionnaire", args, nil); err != nil || !strings.HasPrefix(text, "error: Nobody is there") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestNotify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, out := filepath.Join(dir, "show"), filepath.Join(dir, "out")
	if out, err := exec.Command("mkfifo", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|%s' \"$1\" \"$2\" > "+out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := host(t, "notify", nil, "notify.command="+program)
	if r == nil {
		return
	}
	r.Event(agent.Event{Type: agent.EventSettled, Aborted: true})
	got, err := os.ReadFile(out) // waits for the writer
	if err != nil || string(got) != "muntin: "+filepath.Base(r.dir)+"|The agent was stopped." {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFileTrigger(t *testing.T) {
	t.Parallel()
	r := host(t, "file-trigger", nil)
	if r == nil {
		return
	}
	r.Tell(extension.EventSessionStart, map[string]string{"reason": "startup"})
	file := filepath.Join(r.dir, ".muntin-prompt")
	if err := os.WriteFile(file+".new", []byte("look at this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if got := <-r.sends; got.Text != "look at this" || got.Extension != "file-trigger" {
		t.Errorf("%+v", got)
	}
}

func TestCustomCompaction(t *testing.T) {
	t.Parallel()
	r := host(t, "custom-compaction", nil)
	if r == nil {
		return
	}
	talk := []llm.Message{
		userText("make it fast"),
		{Role: llm.RoleAssistant, Content: []llm.Block{
			{Type: llm.BlockText, Text: "I measure first."}, {Type: llm.BlockToolCall, ID: "1", Name: "edit", Arguments: []byte(`{"path":"a.go"}`)},
		}},
	}
	res, err := r.Compaction(t.Context(), extension.Compaction{Reason: "manual", Previous: "before"}, func() []llm.Message { return talk })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before", "- make it fast", "- a.go (changed)", "I measure first."} {
		if !strings.Contains(res.Summary, want) {
			t.Errorf("%q is not in %q", want, res.Summary)
		}
	}
}

func TestSSHTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := t.TempDir()
	ssh := filepath.Join(dir, "ssh") // what sshd does with the command: the shell gets it
	script := "#!/bin/sh\nwhile [ $# -gt 2 ]; do [ \"$1\" = -- ] && host=$2; shift; done\n[ \"$host\" = there ] || exit 255\n" +
		"cd " + far + " && exec sh -c \"$2\"\n"
	if err := os.WriteFile(ssh, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := host(t, "ssh-tools", nil, "ssh-tools.host=there", "ssh-tools.ssh="+ssh)
	if r == nil {
		return
	}
	for _, c := range [][3]string{
		{"write", `{"path":"sub/it's a \"file\"","content":"one\ntwo\nthree\n"}`, "Wrote 14 bytes"},
		{"read", `{"path":"sub/it's a \"file\"","offset":2,"limit":1}`, "two\n"},
		{"edit", `{"path":"sub/it's a \"file\"","oldText":"two","newText":"2"}`, "Changed"},
		{"bash", `{"command":"cat sub/*; exit 3"}`, "error: one\n2\nthree\n\n\nCommand exited with code 3"},
	} {
		if text, err := r.tool(t, c[0], c[1], nil); err != nil || !strings.Contains(text, c[2]) {
			t.Errorf("%s %s: %q, %v", c[0], c[1], text, err)
		}
	}
	if _, err := r.tool(t, "edit", `{"path":"sub/it's a \"file\"","oldText":"none","newText":""}`, nil); err == nil || !strings.Contains(err.Error(), "0 times") {
		t.Error(err)
	}
	if _, err := r.tool(t, "read", `{"path":"missing"}`, nil); err == nil {
		t.Error("a missing file was read")
	}
	nowhere := host(t, "ssh-tools", nil)
	if _, err := nowhere.tool(t, "bash", `{"command":"true"}`, nil); err == nil || !strings.Contains(err.Error(), "no host") {
		t.Error(err)
	}
}

func TestSandboxedTools(t *testing.T) {
	t.Parallel()
	r := host(t, "sandboxed-tools", nil) // what keeps it in is tested with the sandbox
	if r == nil {
		return
	}
	if text, err := r.tool(t, "bash", `{"command":"echo x > new && cat new; exit 4"}`, nil); err != nil || text != "error: x\n\n\nCommand exited with code 4" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "new")); err != nil {
		t.Error(err)
	}
	if text, err := r.tool(t, "bash", `{"command":"sleep 100","timeout":0.1}`, nil); err != nil || !strings.Contains(text, "[stopped]") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCustomProvider(t *testing.T) {
	t.Parallel()
	r := host(t, "custom-provider", nil)
	if r == nil {
		return
	}
	p, known, ok := r.Provider("echo/parrot")
	if !ok || known.ContextWindow != 100000 {
		t.Fatalf("%+v, %v", known, ok)
	}
	deltas := 0
	var last llm.Event
	for e := range p.Stream(t.Context(), llm.Request{Model: "parrot", Messages: []llm.Message{userText("say it again")}}) {
		if e.Type == llm.EventTextDelta {
			deltas++
		}
		last = e
	}
	if last.Type != llm.EventDone || last.Message.Text() != "say it again" || deltas != 3 || last.Message.Usage.Output != 3 {
		t.Errorf("%d pieces, %+v", deltas, last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for e := range p.Stream(ctx, llm.Request{Model: "parrot"}) {
		last = e
	}
	if last.Type != llm.EventError {
		t.Errorf("%+v", last)
	}
	if _, _, ok := r.Provider("echo/other"); ok {
		t.Error("a model that there is not")
	}
}

func TestSubAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, log := filepath.Join(dir, "muntin"), filepath.Join(dir, "log")
	script := "#!/bin/sh\nshift 2\necho \"$*\" >> " + log + "\ncase $1 in send) echo \"did: $(cat)\";; ls) echo ada;; logs) echo '{\"kind\":\"start\"}'; echo '{\"turn_end\":{\"reason\":\"done\",\"text\":\"counted\"}}'; sleep 60;; down) echo gone;; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := host(t, "sub-agent", nil, "sub-agent.muntin="+program)
	if r == nil {
		return
	}
	var part string
	if text, err := r.tool(t, "sub_agent", `{"action":"ask","task":"the task"}`, func(s string) { part = s }); err != nil || text != "counted\n\ngone\n" {
		t.Errorf("%q, %v", text, err)
	}
	if !strings.Contains(part, "muntin attach sub-") {
		t.Error(part)
	}
	if text, err := r.tool(t, "sub_agent", `{"action":"ask","agent":"ada","task":"more"}`, nil); err != nil || text != "did: more\n" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := r.tool(t, "sub_agent", `{"action":"agents"}`, nil); err != nil || text != "ada\n" {
		t.Errorf("%q, %v", text, err)
	}
	got, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"run --name sub-", "logs agent --run sub-", "down sub-", "send ada --wait", "ls"} {
		if lines := strings.Split(string(got), "\n"); len(lines) <= i || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is not %q: %s", i, want, got)
		}
	}
}
