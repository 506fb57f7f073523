package pty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"muntin/agent/adapter"
	"muntin/internal/id"
	"muntin/internal/state"
)

// A Checkpointer keeps the state of the agent's worktree.
type Checkpointer interface {
	// Save takes a checkpoint. It is called from a goroutine of its own, never
	// twice at once, and ends soon after ctx does. An error is written down as
	// checkpoint_failed and stops nothing. For CauseBetween it takes one only
	// if something was changed, and else answers ErrUnchanged.
	Save(ctx context.Context, req CheckpointRequest) (CheckpointInfo, error)
}

// A Maintainer is a Checkpointer whose store is to be looked after now and then.
type Maintainer interface {
	// Maintain does so. It is called from a goroutine of its own after a turn
	// whenever tendEvery checkpoints have been taken, never twice at once; the
	// next message waits for it. When a person begins a turn meanwhile its ctx
	// ends, and Save may be called beside it. An error is logged.
	Maintain(ctx context.Context) error
}

// LimitsEvery is the least time between two usage events of a turn.
const LimitsEvery = 5 * time.Second

// tendEvery is how many checkpoints come between two calls of Maintain.
const tendEvery = 16

// A CheckpointCause says why a checkpoint is taken.
type CheckpointCause string

// Why a supervisor takes checkpoints: before the first turn, so that it can be
// taken back; after each; and before each, if files were changed since the last,
// by a person then. For a turn that a person begins it is asked for when they
// press Enter at the idle agent, or else when the turn is seen to begin.
const (
	CauseStart   CheckpointCause = "start"
	CauseTurn    CheckpointCause = "turn"
	CauseBetween CheckpointCause = "between"
)

// ErrUnchanged is what a Checkpointer answers to CauseBetween if all is as it
// was at the last checkpoint.
var ErrUnchanged = errors.New("nothing was changed since the last checkpoint")

// A CheckpointRequest tells what a checkpoint belongs to.
type CheckpointRequest struct {
	Run, Agent string
	Turn       int    // the turn that ended; the last one before the start, 0 if none
	Message    string // id of the message that began the turn
	Entry      string // the session entry that the turn ended with, where it is known
	Cause      CheckpointCause
}

// Options say what Run supervises. Run, Agent, Dir and Argv are needed.
type Options struct {
	Run, Agent string
	Dir        state.AgentDir
	Argv       []string
	WorkDir    string
	// Env is the whole environment of the agent; nil: this process's. TMUX and
	// TMUX_PANE are left out of it unless KeepTMUX is set, so that an agent's
	// "tmux kill-server" cannot reach the server it lives in.
	Env      []string
	KeepTMUX bool
	Adapter  adapter.Adapter
	// Conversation is that which an outside agent goes on with or begins, as far
	// as it is known before the start.
	Conversation Conversation

	Ready Readiness // what else an outside agent must show to be ready
	// Hooked says that the agent has the hooks of its adapter, and so tells of
	// its turns by them.
	Hooked bool
	// Advise is called once, in a goroutine of its own, when the agent is ready:
	// it must not make the start slower. What it
	// gives, if it is not empty, is written down as a warning. ctx ends with the
	// agent. nil: nothing is asked.
	Advise func(ctx context.Context) string
	// First gives the command line that begins the agent with that text as its
	// first prompt, where its CLI takes one there; ok is false where it does not.
	// It is called at most once, before the start. nil: prompts are typed.
	First func(text string) (argv []string, ok bool)

	Checkpoints       Checkpointer  // nil: none are taken
	CheckpointTimeout time.Duration // 0: 1 min

	In, Out *os.File // the pane's terminal; nil: no input, output is dropped

	Hold      time.Duration // nothing is typed while a person's last key is younger; 0: 3 s
	HoldDraft time.Duration // nor while a text of theirs stands unsent whose last key is younger; 0: 10 min
	OnHeld    func(bool)    // told when the next message begins or ceases to wait for a person; must not block; nil: nobody
	Grace     time.Duration // from the first signal to SIGKILL; 0: 5 s
	Redact    []string      // values to leave out of the recording
	RecordCap int64         // bytes of one recording file; 0: 64 MiB
	// Limits has what a turn uses told while it runs, at most every LimitsEvery,
	// and what its processes hold at its end. Without, nothing is measured.
	Limits bool

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: nothing is logged
}

func (o *Options) complete() error {
	if err := errors.Join(id.CheckName("run", o.Run), id.CheckName("agent", o.Agent)); err != nil {
		return err
	}
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return errors.New("no command given")
	}
	if n := len(o.Dir.Socket); n == 0 || n > state.MaxSocketPath {
		return fmt.Errorf("socket path %q has %d bytes: want 1 to %d", o.Dir.Socket, n, state.MaxSocketPath)
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Env = strip(o.Env, o.Adapter.StripEnv)
	if !o.KeepTMUX {
		o.Env = strip(o.Env, []string{"TMUX", "TMUX_PANE"})
	}
	if o.OnHeld == nil {
		o.OnHeld = func(bool) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	orDefault(&o.Hold, 3*time.Second)
	orDefault(&o.HoldDraft, 10*time.Minute)
	orDefault(&o.Ready.Timeout, time.Minute)
	orDefault(&o.Grace, 5*time.Second)
	orDefault(&o.CheckpointTimeout, time.Minute)
	return nil
}

func orDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// strip leaves the named variables out of env.
func strip(env, names []string) []string {
	if len(names) == 0 {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}
