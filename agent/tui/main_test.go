package tui

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/llm/scripted"
	"muntin/internal/term"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

const script = `version: 1
rules:
  - match: '^work'
    steps:
      - thinking: let me see
        text: "I will write\nit."
        tools:
          - name: write
            arguments: {path: lib/x.sh, content: "echo 1\necho 2\n"}
          - name: bash
            arguments: {command: "seq 1 9\n# more"}
        usage: {input: 1200, output: 300}
      - tools:
          - name: edit
            arguments: {path: lib/x.sh, edits: [{oldText: echo 2, newText: echo two}]}
          - name: bash
            arguments: {command: "printf '\\033[31mred\\033[0m\\n'; exit 3"}
        usage: {input: 100, output: 10}
      - text: All done.
        usage: {input: 800, output: 40}
  - match: '^wait'
    steps:
      - text: I wait.
        tools: [{name: bash, arguments: {command: "echo up > up; while ! test -e go; do sleep 0.02; done"}}]
      - text: waited
  - match: '^steer'
    steps: [{text: steered now}]
  - match: '^fail'
    steps: [{error: {status: 401, message: no such key}}]
  - match: '^hello'
    steps: [{text: hello yourself}]
`

// buffer is a terminal that a test can wait on.
type buffer struct {
	mu    sync.Mutex
	text  strings.Builder
	since int // where what a test looks at begins
	wrote chan struct{}
}

// mark begins what seeSince looks at.
func (b *buffer) mark() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = b.text.Len()
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (b *buffer) raw() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *buffer) plain() string { return ansi.Strip(b.raw()) }

// ui is a front end that runs on a real agent with a scripted model.
type ui struct {
	t     *testing.T
	out   *buffer
	in    io.WriteCloser
	stops chan os.Signal
	agent *harness.Harness
	dir   string
	link  *link
	ui    *UI
	end   chan error
	once  sync.Once
	err   error
}

type setup struct {
	opts    Options
	session string
	link    *link
	dir     string
	notices []string
	ext     *extension.Host
	reload  func(context.Context) (harness.Loaded, error)
}

func run(t *testing.T, change func(*setup)) *ui {
	t.Helper()
	in, typed := io.Pipe()
	u := &ui{t: t, out: &buffer{wrote: make(chan struct{}, 1)}, in: typed, stops: make(chan os.Signal), end: make(chan error, 1)}
	s := setup{dir: t.TempDir(), opts: Options{
		In: in, Out: u.out, Interrupts: u.stops, Theme: term.DefaultTheme(), Name: "worker", Model: "scripted/test", Dir: "/p",
		Width: func() int { return 60 },
	}}
	change(&s)
	u.dir, u.link = s.dir, s.link
	if s.link != nil {
		s.opts.Link = s.link
	}
	model, err := scripted.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	front := New(s.opts)
	u.agent, err = harness.Open(t.Context(), harness.Options{
		Provider: scripted.New(model, scripted.Options{}), Model: "scripted/test", Dir: s.dir, Session: s.session, OnEvent: front.OnEvent, UI: front, OnWaiting: front.Waiting, Extensions: s.ext, Reload: s.reload,
	})
	if err != nil {
		t.Fatal(err)
	}
	u.ui = front
	ctx, cancel := context.WithCancel(t.Context())
	go func() { u.end <- front.Run(ctx, u.agent, s.notices...) }()
	t.Cleanup(func() {
		cancel()
		u.in.Close()
		_ = u.ended() // the test looks at it, if it is of interest
		u.agent.Close()
		if last := front.Agent(); last != nil {
			last.Close()
		}
	})
	return u
}

// ended waits for the end of Run and gives its error.
func (u *ui) ended() error {
	u.t.Helper()
	u.once.Do(func() {
		select {
		case u.err = <-u.end:
		case <-time.After(patience):
			u.t.Errorf("Run did not end; on the screen:\n%s", u.out.plain())
		}
	})
	return u.err
}

func (u *ui) typeLine(line string) {
	u.t.Helper()
	if _, err := io.WriteString(u.in, line+"\n"); err != nil {
		u.t.Fatal(err)
	}
}

// see waits until the screen shows all of the texts, in this order.
func (u *ui) see(texts ...string) {
	u.t.Helper()
	deadline := time.After(patience)
	for {
		rest, missing := u.out.plain(), ""
		for _, want := range texts {
			i := strings.Index(rest, want)
			if i < 0 {
				missing = want
				break
			}
			rest = rest[i+len(want):]
		}
		if missing == "" {
			return
		}
		select {
		case <-u.out.wrote:
		case <-deadline:
			u.t.Fatalf("%q is not on the screen:\n%s", missing, u.out.plain())
		}
	}
}

// seeSince is see for what was written since the mark.
func (u *ui) seeSince(texts ...string) {
	u.t.Helper()
	u.until(strings.Join(texts, ", then "), func() bool {
		rest := ansi.Strip(u.out.raw()[u.out.since:])
		for _, want := range texts {
			i := strings.Index(rest, want)
			if i < 0 {
				return false
			}
			rest = rest[i+len(want):]
		}
		return true
	})
}

// front is the agent that the front end has now.
func (u *ui) front() *harness.Harness { return u.ui.Agent() }

// until waits for something that no write tells of.
func (u *ui) until(what string, ok func() bool) {
	u.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			u.t.Fatalf("%s did not happen; on the screen:\n%s", what, u.out.plain())
		}
	}
}

func (u *ui) exists(name string) func() bool {
	return func() bool { _, err := os.Stat(u.dir + "/" + name); return err == nil }
}

func (u *ui) make(name string) {
	u.t.Helper()
	if err := os.WriteFile(u.dir+"/"+name, nil, 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// link records what it is told.
type link struct {
	messages chan Incoming
	mu       sync.Mutex
	told     []string
	news     chan struct{}
	outcomes []harness.Outcome
}

func newLink() *link {
	return &link{messages: make(chan Incoming, 10), news: make(chan struct{}, 1)}
}

func (l *link) tell(parts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, strings.Join(parts, " "))
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *link) Messages() <-chan Incoming   { return l.messages }
func (l *link) Ready(context.Context) error { l.tell("ready"); return nil }
func (l *link) Accepted(id string)          { l.tell("accepted", id) }
func (l *link) Refused(id, why string)      { l.tell("refused", id+":", why) }
func (l *link) TurnStart(id string)         { l.tell("start", id) }
func (l *link) Tool(r ToolReport) {
	l.tell("tool", r.Name, r.Summary, map[bool]string{true: "failed"}[r.IsError])
}
func (l *link) Waits(question string) { l.tell("waits", question) }
func (l *link) TurnEnd(id string, o harness.Outcome, err error) {
	l.mu.Lock()
	l.outcomes = append(l.outcomes, o)
	l.mu.Unlock()
	word := "done"
	if aborted(err) {
		word = "aborted"
	} else if err != nil {
		word = "failed"
	}
	l.tell("end", id, word)
}

func (l *link) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.told, "\n")
}

// toldTo waits until the link was told exactly this.
func (u *ui) told(lines ...string) {
	u.t.Helper()
	want := strings.Join(lines, "\n")
	deadline := time.After(patience)
	for {
		got := u.link.all()
		if got == want {
			return
		}
		select {
		case <-u.link.news:
		case <-deadline:
			u.t.Fatalf("the link was told\n%s\nwant\n%s", got, want)
		}
	}
}
