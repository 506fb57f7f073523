package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muntin/agent"
	"muntin/internal/term"
)

// A UI shows what extensions say, and asks what they want to know. Its methods may
// be called from several goroutines. Ask blocks until there is an answer or ctx
// ends; the others return soon.
type UI interface {
	Ask(ctx context.Context, q Question) Answer
	Notify(n Notice)
	Status(s Status)
}

// Options are what a Host is made of.
type Options struct {
	Extensions []Extension // in the order in which gates are asked
	Dir        string      // the working folder
	State      string      // the folder of what extensions keep, and of their logs
	Mode       string      // tui, print, json, rpc or acp
	Version    string      // of muntin
	Env        []string    // of programs that name no permissions
	AllEnv     []string    // where those that do find the variables that they name
	Flags      []string    // EXTENSION.NAME=VALUE, or EXTENSION.NAME for true
	// Confine makes of a command one that has only what a permission gives. nil:
	// programs run as they are.
	Confine func(ctx context.Context, c Confinement) (argv []string, err error)
}

// A Confinement is a program that is to be confined.
type Confinement struct {
	Argv       []string
	Permission Permission
	Dir        string   // the working folder
	Home       string   // the extension's own folder
	Writable   []string // folders that can always be written
	Env        []string // of the program
}

// An Attachment is the agent that a host's extensions work for.
type Attachment struct {
	Session string        // the id of the conversation
	UI      UI            // nil: nobody is there; questions are not answered
	Send    func(Sending) // takes messages for the model; nil: they are lost
}

// A Host runs extensions. All its methods may be called from any goroutine; those
// that take a context block until an extension has answered, its deadline or the
// context's end.
type Host struct {
	opts   Options
	ctx    context.Context // of the programs
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards all below
	closed  bool
	runners []*runner
	to      Attachment
}

// New makes a host. No program is started. The programs outlive ctx, until Close.
// The error is of a flag.
func New(ctx context.Context, o Options) (*Host, error) {
	h := &Host{opts: o}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if h.runners, err = h.makeRunners(o.Extensions); err != nil {
		h.cancel()
		return nil, err
	}
	return h, nil
}

func (h *Host) makeRunners(all []Extension) ([]*runner, error) {
	given, errs := map[string]map[string]string{}, []error(nil)
	for _, text := range h.opts.Flags {
		name, value, ok := strings.Cut(text, "=")
		ext, flag, dotted := strings.Cut(name, ".")
		if !ok {
			value = "true"
		}
		if !dotted || !slices.ContainsFunc(all, func(e Extension) bool { return e.Name == ext }) {
			errs = append(errs, fmt.Errorf("flag %s: want EXTENSION.NAME=VALUE of an extension that is there", text))
			continue
		}
		if given[ext] == nil {
			given[ext] = map[string]string{}
		}
		given[ext][flag] = value
	}
	var runners []*runner
	for _, e := range all {
		flags, err := e.values(given[e.Name])
		errs = append(errs, err)
		runners = append(runners, &runner{host: h, ext: e, flags: flags, turn: make(chan struct{}, 1)})
	}
	return runners, errors.Join(errs...)
}

// Close ends all programs and waits for them.
func (h *Host) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	runners := h.runners
	h.mu.Unlock()
	var all sync.WaitGroup
	for _, r := range runners {
		all.Go(r.close)
	}
	all.Wait()
	h.cancel()
	h.work.Wait()
}

// Reload ends all programs and goes on with other extensions, whose programs start
// when they are needed. Extensions that were given up get another chance. On an
// error, which is of a flag, all stays as it is.
func (h *Host) Reload(extensions []Extension) error {
	next, err := h.makeRunners(extensions)
	if err != nil {
		return fmt.Errorf("loading the extensions again: %w", err)
	}
	h.mu.Lock()
	old := h.runners
	if h.closed {
		next = nil
	}
	h.runners = next
	h.mu.Unlock()
	var all sync.WaitGroup
	for _, r := range old {
		all.Go(r.close)
	}
	all.Wait()
	return nil
}

// Attach says whom the extensions work for. It is to be called before the first use.
func (h *Host) Attach(a Attachment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to = a
}

func (h *Host) attached() Attachment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.to
}

// spawn does something in a goroutine that Close waits for; nothing once it is closed.
func (h *Host) spawn(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(do)
	}
}

func (h *Host) all() []*runner {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runners
}

// Extensions gives what is loaded, in order.
func (h *Host) Extensions() []Extension {
	var all []Extension
	for _, r := range h.all() {
		all = append(all, r.ext)
	}
	return all
}

// Event tells the extensions that want it of an event of the agent. It returns at
// once: one that does not read its input misses events, and is named.
func (h *Host) Event(e agent.Event) { h.Tell(string(e.Type), e) }

// Tell is Event for one that is not of the agent's loop.
func (h *Host) Tell(name string, params any) {
	var raw json.RawMessage
	for _, r := range h.all() {
		if !slices.Contains(r.ext.Events, name) {
			continue
		}
		if raw == nil {
			line, err := encode(params)
			if err != nil {
				return
			}
			raw = line[:len(line)-1]
		}
		r.event(Frame{Type: TypeEvent, Method: name, Params: raw})
	}
}

func (h *Host) notify(ext, level, format string, args ...any) {
	if ui := h.attached().UI; ui != nil {
		ui.Notify(Notice{Level: level, Text: fmt.Sprintf(format, args...), Extension: ext})
	}
}

// Say shows the user what a command or a gate had to say.
func (h *Host) Say(text string) { h.notify("", LevelReply, "%s", term.Clean(text)) }

// LogFile is where what an extension's program writes to standard error goes.
func LogFile(state, name string) string { return filepath.Join(state, name+".log") }

// StateDir is the folder in which an extension may keep files.
func StateDir(state, name string) string { return filepath.Join(state, name) }
