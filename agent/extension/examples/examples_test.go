package examples_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"muntin/agent"
	"muntin/agent/extension"
	"muntin/agent/extension/examples"
	"muntin/agent/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// person answers questions, and keeps what it was shown.
type person struct {
	answers func(q extension.Question) extension.Answer

	mu      sync.Mutex // guards all below
	asked   []string
	notices []string
	status  chan string
}

func (p *person) Ask(_ context.Context, q extension.Question) extension.Answer {
	p.mu.Lock()
	p.asked = append(p.asked, q.Title)
	p.mu.Unlock()
	if p.answers == nil {
		return extension.Answer{}
	}
	return p.answers(q)
}

func (p *person) Notify(n extension.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notices = append(p.notices, n.Extension+": "+n.Text)
}

func (p *person) Status(s extension.Status) {
	select {
	case p.status <- s.Text:
	default:
	}
}

func (p *person) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(append(p.notices, p.asked...), "\n")
}

func yes(extension.Question) extension.Answer {
	return extension.Answer{Answered: true, Confirmed: true}
}
func no(extension.Question) extension.Answer { return extension.Answer{Answered: true} }

// runnable tells whether this machine has what an example is written in.
func runnable(t *testing.T, e extension.Extension) bool {
	t.Helper()
	argv := e.Command
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Logf("%s is not tried: %v", e.Name, err)
		return false
	}
	if argv[0] == "node" {
		if err := exec.Command("node", "--experimental-strip-types", "-e", "1").Run(); err != nil {
			t.Logf("%s is not tried: this node runs no TypeScript: %v", e.Name, err)
			return false
		}
	}
	return true
}

// a rig is one example, installed and hosted.
type rig struct {
	*extension.Host
	ext   extension.Extension
	dir   string // the working folder
	sends chan extension.Sending
}

// install copies an example; ok is false when it cannot run here.
func install(t *testing.T, name string) (e extension.Extension, ok bool) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := examples.Write(dir, name, name); err != nil {
		t.Fatal(err)
	}
	all, problems := extension.Load(extension.Place{Dir: dir, Source: "test", One: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return all[0], runnable(t, all[0])
}

// host starts an example for somebody; nil when it cannot run here.
func host(t *testing.T, name string, p *person, flags ...string) *rig {
	t.Helper()
	e, ok := install(t, name)
	if !ok {
		return nil
	}
	r := &rig{ext: e, dir: t.TempDir(), sends: make(chan extension.Sending, 8)}
	var err error
	r.Host, err = extension.New(t.Context(), extension.Options{
		Extensions: []extension.Extension{e}, Dir: r.dir, State: t.TempDir(), Mode: "rpc", Flags: flags, Env: os.Environ(), AllEnv: os.Environ(),
	})
	if err != nil {
		t.Fatal(err)
	}
	to := extension.Attachment{Session: "s1", Send: func(s extension.Sending) { r.sends <- s }}
	if p != nil {
		p.status = make(chan string, 8)
		to.UI = p
	}
	r.Attach(to)
	t.Cleanup(r.Close)
	return r
}

// call asks the gate about a call, and gives why it is blocked; "" when it is not.
func (r *rig) call(t *testing.T, tool, args string) string {
	t.Helper()
	v, err := r.BeforeTool(t.Context(), agent.ToolCall{ID: "1", Name: tool, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	if v.Block && v.Reason == "" {
		t.Error("blocked without a reason")
	}
	return v.Reason
}

// tool runs a tool of the example.
func (r *rig) tool(t *testing.T, name, args string, update func(string)) (string, error) {
	t.Helper()
	for _, tool := range r.Tools() {
		if tool.Spec().Name != name {
			continue
		}
		res, err := tool.Run(t.Context(), json.RawMessage(args), func(u agent.ToolResult) {
			if update != nil && len(u.Content) > 0 {
				update(u.Content[0].Text)
			}
		})
		text := ""
		for _, b := range res.Content {
			text += b.Text
		}
		if res.IsError {
			text = "error: " + text
		}
		return text, err
	}
	t.Fatalf("there is no tool %s", name)
	return "", nil
}

func (r *rig) command(t *testing.T, text string) extension.CommandResult {
	t.Helper()
	res, known, err := r.Command(t.Context(), text)
	if err != nil || !known {
		t.Fatalf("%s: %v, known %v", text, err, known)
	}
	return res
}

func TestEveryExampleKeepsToTheProtocol(t *testing.T) {
	t.Parallel()
	all, err := examples.List()
	if err != nil || len(all) < 18 {
		t.Fatalf("%d examples, %v", len(all), err)
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Name, "hello-") && os.Getenv("MUNTIN_SOAK") == "" {
			continue // each has a test of its own
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			ext, ok := install(t, e.Name)
			if !ok {
				return
			}
			dir := t.TempDir()
			checks, err := extension.Conformance(t.Context(), ext, extension.CheckOptions{
				Tools: strings.HasPrefix(e.Name, "hello-") || e.Name == "todo",
				Options: extension.Options{
					Dir: dir, State: t.TempDir(), Mode: "print", Env: os.Environ(), AllEnv: os.Environ(),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(checks) < 8 {
				t.Errorf("only %d checks", len(checks))
			}
			for _, c := range checks {
				if !c.OK {
					t.Errorf("%s: %s", c.Name, c.Note)
				}
			}
		})
	}
}

// The libraries of all languages do the same.
func TestHelloInEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"go", "python", "typescript", "sh"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			hello(t, "hello-"+language)
		})
	}
}

func hello(t *testing.T, name string) {
	p := &person{answers: yes}
	r := host(t, name, p, name+".word=grüß \"dich\"")
	if r == nil {
		return
	}
	if why := r.call(t, "bash", `{"command":"echo ok"}`); why != "" {
		t.Error(why)
	}
	if why := r.call(t, "bash", `{"command":"echo grüß \"dich\"\n"}`); !strings.Contains(why, "the word is not allowed") {
		t.Errorf("not blocked: %q", why)
	}
	if text, handled, err := r.Input(t.Context(), extension.Input{Text: "hi"}); err != nil || handled || text != "Hello there." {
		t.Errorf("%q, %v, %v", text, handled, err)
	}
	if text, _, err := r.Input(t.Context(), extension.Input{Text: "héé\n\"😀\"\\"}); err != nil || text != "héé\n\"😀\"\\" {
		t.Errorf("%q, %v", text, err)
	}
	var part string
	if text, err := r.tool(t, "hello", `{"name":"Zoë \"Z\" 😀\\"}`, func(s string) { part = s }); err != nil || text != `Hello, Zoë "Z" 😀\!` || part != "Hello…" {
		t.Errorf("%q, %v, before it %q", text, err, part)
	}
	if got := r.command(t, "/hello"); got.Text != "Hello." {
		t.Errorf("%+v", got)
	}
	if got := r.command(t, "/hello ask"); got.Text != "yes" {
		t.Errorf("%+v", got)
	}
	p.answers = no
	if got := r.command(t, "/hello ask"); got.Text != "no" {
		t.Errorf("%+v", got)
	}
	p.answers = nil
	if got := r.command(t, "/hello ask"); got.Text != "nobody answered" {
		t.Errorf("%+v", got)
	}
	r.Event(agent.Event{Type: agent.EventSettled})
	if got := <-p.status; got != "settled" {
		t.Error(got)
	}
	if text := p.said(); strings.Contains(text, name+":") {
		t.Error(text)
	}
}

func TestThereIsNoSuchExample(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nothing", "sdk", "../x", ""} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := examples.Write(dir, "x", name); err == nil {
			t.Errorf("%q was made", name)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q left a folder", name)
		}
	}
}

func userText(text string) llm.Message { return llm.UserText(text, 1) }
