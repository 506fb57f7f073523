// Package harness is the coding agent: the kernel with a model, the tools, a
// session and the system prompt. Its front ends are the packages tui and rpc.
//
// Every message stands in the session before it matters: the user's before the
// request leaves, the model's tool calls before they run. If the session cannot
// be written, the run ends. Tool calls that a crash left without a result are
// answered when the session goes on.
package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"muntin/agent"
	"muntin/agent/compact"
	"muntin/agent/llm"
	"muntin/agent/resource"
	"muntin/agent/session"
	"muntin/agent/tool"
)

// ErrClosed says that the harness was closed.
var ErrClosed = errors.New("the agent is closed")

// Options say what a coding agent is made of. Provider, Model and Dir are needed.
type Options struct {
	Provider        llm.Provider
	Model           string        // "provider/id"; the provider is for the record, the id goes to Provider
	Known           llm.Model     // what is known of the model: its window counts where Compaction names none
	Thinking        llm.Level     // "": as the session says, else the provider's default
	DefaultThinking llm.Level     // where neither Thinking nor the session says it
	MaxTokens       int           // for one response; 0: the provider's default
	Dir             string        // the working folder
	Session         string        // the session's file; "": in memory
	Parent          string        // the file that a new session comes from; "": none
	Tools           []string      // nil: the default ones; empty: none
	System          string        // in place of the system prompt's own words; "": those
	AppendSystem    string        // added to the system prompt
	NoContext       bool          // leave the project's context files out
	Resources       *resource.Set // skills, prompt templates and texts for the system prompt; nil: none
	Env             []string      // of commands; nil: this process's
	SpillDir        string        // for outputs too long to show; "": they are not kept
	BashTimeout     time.Duration
	Compaction      compact.Settings  // when room is made in the context
	Retry           agent.RetryPolicy // of requests, also those for summaries

	// Changed gives the files that changed since a time by other means than the
	// tools, as by commands; a summary tells of them. nil: it is not known.
	Changed func(ctx context.Context, since time.Time) ([]string, error)

	// OnEvent takes the events of runs, one at a time, in order. A message that
	// it sees the end of is in the session. It must not call Prompt or Continue.
	OnEvent func(agent.Event)
	Now     func() time.Time // default time.Now
}

// A Harness is an open coding agent. It makes one run at a time; all its methods
// may be called from any goroutine.
type Harness struct {
	kernel  *agent.Agent
	session *session.Session
	tools   *tool.Set
	missing error // context files that could not be read
	found   *resource.Set
	room    room
	onEvent func(agent.Event)
	now     func() time.Time
	window  int // tokens, of Options.Compaction: it counts for every model
	retry   agent.RetryPolicy
	maxOut  int // tokens, of Options.MaxTokens

	telling sync.Mutex // held while onEvent is called

	mu      sync.Mutex // guards all below
	model   Model
	level   llm.Level
	sizes   compact.Settings // without the window
	noRetry bool
	bash    []session.Bash // commands of the user that ended during a run
	waiting []waiting      // messages that the kernel has and the session has not
	lastKey int
	run     tally
	stop    context.CancelCauseFunc // of what goes on while no run does; nil: nothing
	closed  bool
}

type waiting struct {
	key    int
	text   string
	origin session.Origin
}

// Open opens the session and makes the agent, which goes on where the session
// stands. ctx is for the opening only. A session that is open elsewhere is an
// error that matches durable.ErrLocked.
func Open(ctx context.Context, opts Options) (*Harness, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("opening the agent: %w", context.Cause(ctx))
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the agent: %w", err)
	}
	set, err := tool.New(tool.Options{Dir: dir, Env: opts.Env, SpillDir: opts.SpillDir, BashTimeout: opts.BashTimeout})
	if err != nil {
		return nil, fmt.Errorf("opening the agent: %w", err)
	}
	names := opts.Tools
	if names == nil {
		names = tool.Defaults()
	}
	tools, err := set.Tools(names...)
	if err != nil {
		return nil, fmt.Errorf("opening the agent: %w", err)
	}
	s, err := session.Open(opts.Session, session.Options{Dir: dir, Parent: opts.Parent, Now: opts.Now})
	if err != nil {
		return nil, fmt.Errorf("opening the agent: %w", err)
	}
	h := &Harness{
		session: s, tools: set, onEvent: opts.OnEvent, now: opts.Now,
		window: opts.Compaction.Window, retry: opts.Retry, maxOut: opts.MaxTokens,
		sizes: opts.Compaction, found: opts.Resources,
	}
	h.room.changed = opts.Changed
	if err := h.start(opts, dir, tools); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the agent: %w", err), s.Close())
	}
	return h, nil
}

func (h *Harness) start(opts Options, dir string, tools []agent.Tool) error {
	h.model = Model{Provider: opts.Provider, Name: opts.Model, Known: opts.Known}
	if err := h.restore(opts.Thinking, opts.DefaultThinking); err != nil {
		return err
	}
	prompt := resource.Prompt{Dir: dir, Date: opts.Now(), System: opts.System, Append: opts.AppendSystem}
	if found := opts.Resources; found != nil {
		prompt.Skills = found.Skills
		prompt.System = cmp.Or(prompt.System, found.System.Text)
		prompt.Append = cmp.Or(prompt.Append, found.Append.Text)
	}
	if !opts.NoContext {
		prompt.Files, h.missing = resource.ContextFiles(dir, homeOf(opts.Env))
	}
	for _, t := range tools {
		prompt.Tools = append(prompt.Tools, t.Spec())
	}
	system := prompt.Text()
	h.room.measure(system, tools)
	if last, ok := h.session.LastCompaction(); ok {
		h.room.since.Store(last.Time().UnixMilli())
	}
	var err error
	h.kernel, err = agent.New(agent.Options{
		Provider: opts.Provider, Model: h.model.id(), System: system, Tools: tools, MaxTokens: opts.MaxTokens, Thinking: h.level,
		SessionID: h.session.Header().ID, Messages: h.session.Messages(), OnEvent: h.event, Hooks: h.hooks(), Retry: opts.Retry, Now: opts.Now,
	})
	return err
}

// Header is the first line of the session.
func (h *Harness) Header() session.Header { return h.session.Header() }

// Resumed reports whether the session held a conversation when it was opened.
func (h *Harness) Resumed() bool { return h.session.Resumed() && len(h.kernel.Messages()) > 0 }

// Problems tells what was found wrong while opening, and left out: lines of the
// session, context files.
func (h *Harness) Problems() []string {
	var all []string
	for _, p := range h.session.Problems() {
		all = append(all, "session "+h.session.Path()+": "+p.String())
	}
	if h.missing != nil {
		all = append(all, strings.Split(h.missing.Error(), "\n")...)
	}
	if h.found != nil {
		all = append(all, h.found.Problems()...)
	}
	return all
}

// Expand gives what a text that a person typed stands for, as resource.Set.Expand
// does. Whoever takes prompts from a person calls it before Prompt.
func (h *Harness) Expand(text string) (string, error) { return h.found.Expand(text) }

// Commands are what Expand knows, for a list of them.
func (h *Harness) Commands() []resource.Command { return h.found.Commands() }

// Messages is the conversation so far. Its messages must not be changed.
func (h *Harness) Messages() []llm.Message { return h.kernel.Messages() }

// Close ends the present run, waits for it, and closes the session.
func (h *Harness) Close() error {
	h.mu.Lock()
	h.closed = true
	done := h.run.done
	h.mu.Unlock()
	h.Abort()
	if done != nil {
		<-done
	}
	return h.session.Close()
}

func homeOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "HOME="); ok {
			return v
		}
	}
	return ""
}
