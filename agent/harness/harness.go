// Package harness is the coding agent: the kernel with a model, the tools, a
// session and the system prompt. Its front ends are the packages tui and rpc.
//
// Every message stands in the session before it matters: the user's before the
// request leaves, the model's tool calls before they run. If the session cannot
// be written, the run ends. Tool calls that a crash left without a result are
// answered when the session goes on.
package harness

import (
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
	"muntin/agent/extension"
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
	Tools           []string      // by name; nil: the default ones, and all of extensions; empty: none
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

	// More is another source of tools, closed with the agent, also when it cannot be
	// opened. nil: none.
	More ToolSource
	// Extensions are closed with the agent, also when it cannot be opened. nil: none.
	Extensions *extension.Host
	// Reload finds anew what Harness.Reload takes; nil: all stays as it is.
	Reload func(ctx context.Context) (Loaded, error)
	UI     UI // for what extensions say and ask; nil: nobody is there
	// OnWaiting is told that an extension queued a message while no run goes on:
	// Continue takes it. It must return soon. nil: it waits for the next run.
	OnWaiting func()
}

// A Harness is an open coding agent. It makes one run at a time; all its methods
// may be called from any goroutine.
type Harness struct {
	kernel  *agent.Agent
	session *session.Session
	tools   *tool.Set
	room    room
	onEvent func(agent.Event)
	now     func() time.Time
	window  int // tokens, of Options.Compaction: it counts for every model
	retry   agent.RetryPolicy
	maxOut  int             // tokens, of Options.MaxTokens
	ext     *extension.Host // nil: none
	reload  func(context.Context) (Loaded, error)
	home    string
	prompt  resource.Prompt // without what is found for it, but for the context files

	telling sync.Mutex // held while onEvent is called

	mu      sync.Mutex // guards all below
	model   Model
	level   llm.Level
	system  string           // the system prompt
	sizes   compact.Settings // without the window
	noRetry bool
	bash    []session.Bash // commands of the user that ended during a run
	waiting []waiting      // messages that the kernel has and the session has not
	lastKey int
	run     tally
	stop    context.CancelCauseFunc // of what goes on while no run does; nil: nothing
	closed  bool
	more    ToolSource    // nil: none
	names   []string      // of tools, as the options say
	found   *resource.Set // nil: none
	missing error         // context files that could not be read
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
	h, err := open(ctx, opts)
	if err != nil {
		opts.Extensions.Close()
		if opts.More != nil {
			err = errors.Join(err, opts.More.Close())
		}
		return nil, fmt.Errorf("opening the agent: %w", err)
	}
	return h, nil
}

func open(ctx context.Context, opts Options) (*Harness, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	set, err := tool.New(tool.Options{Dir: dir, Env: opts.Env, SpillDir: opts.SpillDir, BashTimeout: opts.BashTimeout})
	if err != nil {
		return nil, err
	}
	h := &Harness{
		tools: set, onEvent: opts.OnEvent, now: opts.Now, ext: opts.Extensions, more: opts.More, reload: opts.Reload, names: opts.Tools,
		window: opts.Compaction.Window, retry: opts.Retry, maxOut: opts.MaxTokens, sizes: opts.Compaction, found: opts.Resources, home: homeOf(opts.Env),
	}
	tools, err := h.toolsNamed(opts.Tools)
	if err != nil {
		return nil, err
	}
	if h.session, err = session.Open(opts.Session, session.Options{Dir: dir, Parent: opts.Parent, Now: opts.Now}); err != nil {
		return nil, err
	}
	h.room.changed = opts.Changed
	if err := h.start(opts, dir, tools); err != nil {
		return nil, errors.Join(err, h.session.Close())
	}
	h.attach(opts)
	if h.ext != nil {
		reason := "startup"
		if h.Resumed() {
			reason = "resume"
		}
		h.ext.Tell(extension.EventSessionStart, map[string]string{"reason": reason})
	}
	return h, nil
}

func (h *Harness) start(opts Options, dir string, tools []agent.Tool) error {
	h.model = Model{Provider: opts.Provider, Name: opts.Model, Known: opts.Known}
	if err := h.restore(opts.Thinking, opts.DefaultThinking); err != nil {
		return err
	}
	h.prompt = resource.Prompt{Dir: dir, Date: opts.Now(), System: opts.System, Append: opts.AppendSystem}
	h.readContext(opts.NoContext)
	system := h.describe(tools)
	if last, ok := h.session.LastCompaction(); ok {
		h.room.since.Store(last.Time().UnixMilli())
	}
	var err error
	h.kernel, err = agent.New(agent.Options{
		Provider: h.asked(opts.Provider), Model: h.model.id(), System: system, Tools: tools, MaxTokens: opts.MaxTokens, Thinking: h.level,
		SessionID: h.session.Header().ID, Messages: h.session.Messages(), OnEvent: h.event, Hooks: h.withExtensions(h.hooks()),
		Retry: opts.Retry, Now: opts.Now,
	})
	return err
}

// Header is the first line of the session.
func (h *Harness) Header() session.Header { return h.session.Header() }

// Resumed reports whether the session held a conversation when it was opened.
func (h *Harness) Resumed() bool { return h.session.Resumed() && len(h.kernel.Messages()) > 0 }

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
	h.ext.Close()
	err := h.session.Close()
	if more := h.source(); more != nil {
		err = errors.Join(err, more.Close())
	}
	return err
}

func homeOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "HOME="); ok {
			return v
		}
	}
	return ""
}
