package adapter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"muntin/agent/adapter"
	"muntin/agent/pty"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
)

type testOptions struct {
	app     *app.App
	name    string
	argv    []string // the command; empty: the adapter's name
	timeout time.Duration
	json    bool
}

// A finding is what a test has seen.
type finding struct {
	Adapter string               `json:"adapter"`
	Command []string             `json:"command"` // as it was started
	Version string               `json:"version,omitempty"`
	Ready   bool                 `json:"ready"`
	Source  adapter.Evidence     `json:"source,omitempty"` // of its being ready
	MS      int64                `json:"ms"`               // until then
	Waiting *pty.WaitingInfo     `json:"waiting,omitempty"`
	Signals []adapter.SignalKind `json:"signals"` // that it gave by then
	Exit    *pty.ExitInfo        `json:"exit,omitempty"`
	Screen  []string             `json:"screen,omitempty"` // the last lines, where it was not ready
}

const (
	testGrace  = 2 * time.Second
	shownLines = 12
)

func runTest(ctx context.Context, o testOptions) error {
	a := o.app
	ad, _, err := find(a, o.name)
	if err != nil {
		return err
	}
	if ad.Link || ad.Name == adapter.Generic && len(o.argv) == 0 {
		return app.Usage("adapter %s: give a command behind --, %s is no program's name", o.name, o.name)
	}
	argv := o.argv
	if len(argv) == 0 {
		argv = []string{o.name}
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return app.Hint(fmt.Errorf("testing adapter %s: %w", o.name, err), "install it, or give its path behind --")
	}
	f, err := watchStart(ctx, o, ad, argv)
	if err != nil {
		return fmt.Errorf("testing adapter %s: %w", o.name, err)
	}
	if o.json {
		err = a.PrintJSON(f)
	} else {
		printFinding(a, f)
	}
	switch {
	case err != nil || f.Ready:
		return err
	case f.Waiting != nil:
		return app.NeedsPerson(fmt.Errorf("%s waits for a person: %s", o.name, f.Waiting.Text))
	case f.Exit != nil:
		return fmt.Errorf("%s ended before it was ready (status %d)", o.name, f.Exit.Code)
	}
	return &app.ExitError{Code: app.ExitDeadline, Err: fmt.Errorf("%s was not ready within %s", o.name, o.timeout)}
}

// watchStart starts the program under a supervisor in folders that are removed
// again, and follows it until it is ready.
func watchStart(ctx context.Context, o testOptions, ad adapter.Adapter, argv []string) (f finding, err error) {
	a := o.app
	dir, err := os.MkdirTemp("", "mt")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	work, agent := filepath.Join(dir, "work"), state.AgentDir{Name: "test", Path: filepath.Join(dir, "agent"), Socket: filepath.Join(dir, "s", "a.sock")}
	for _, d := range []string{work, agent.Path} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return f, err
		}
	}
	start, err := ad.Prepare(adapter.Launch{
		Argv: argv, Env: append(append([]string{}, a.Environ...), "MUNTIN_SOCKET="+agent.Socket), WorkDir: work, FilesDir: filepath.Join(agent.Path, "cli"), Self: a.Self,
	})
	if err != nil {
		return f, err
	}
	for _, file := range start.Files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file.Name), 0o700), os.WriteFile(file.Name, []byte(file.Text), 0o600)); err != nil {
			return f, err
		}
	}
	says, err := app.Versions(a).Of(ctx, adapter.Command(argv), start.Env)
	if err != nil {
		says = "" // it is told as not known
	}
	f = finding{Adapter: ad.Name, Command: start.Argv, Signals: []adapter.SignalKind{}, Version: term.CleanLine(says)}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	ended := make(chan error, 1)
	began := a.Now()
	go func() {
		exit, err := pty.Run(ctx, pty.Options{
			Run: "test", Agent: agent.Name, Dir: agent, Argv: start.Argv, Env: start.Env, WorkDir: work, Adapter: ad, Grace: testGrace,
			Conversation: pty.Conversation{ID: start.Conversation}, Hooked: start.Hooked, Now: a.Now,
		})
		f.Exit = &exit
		ended <- err
	}()
	seen := follow(ctx, agent, ended)
	cancel()
	err = <-ended
	f.Ready, f.Source, f.Waiting, f.Screen = seen.Ready, seen.Source, seen.Waiting, seen.Screen
	f.Signals = append(f.Signals, seen.Signals...)
	f.MS = a.Now().Sub(began).Milliseconds()
	if !seen.own {
		f.Exit = nil // we have ended it
	}
	return f, err
}

// A sighting is what follow has seen; own says that the program ended by
// itself.
type sighting struct {
	finding
	own bool
}

// follow watches the supervisor until the program is ready, asks something, or
// ends.
func follow(ctx context.Context, dir state.AgentDir, ended chan error) (s sighting) {
	client, err := dialUp(ctx, dir, ended)
	if err != nil {
		s.own = errors.Is(err, pty.ErrNotRunning)
		return s
	}
	defer client.Close()
	_ = client.Subscribe(ctx, 1, func(e pty.Event) error { // ends with an event, the program or ctx
		switch {
		case e.Ready != nil:
			s.Ready, s.Source = true, e.Ready.Source
		case e.Waiting != nil && e.Waiting.For != pty.WaitNothing:
			s.Waiting = e.Waiting
		case e.Exit != nil:
			s.own = true
		default:
			return nil
		}
		return context.Canceled
	})
	if !s.Ready && s.Waiting == nil && ctx.Err() == nil { // the supervisor is ending
		err := <-ended
		ended <- err // for whoever waits for it
		s.own = true
		return s
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), testGrace)
	defer cancel()
	if status, err := client.Status(look); err == nil {
		s.Signals = status.Signals
	}
	if !s.Ready {
		if screen, err := client.Screen(look, false); err == nil {
			s.Screen = shown(screen.Lines)
		}
	}
	return s
}

// dialUp connects to the supervisor as soon as it serves.
func dialUp(ctx context.Context, dir state.AgentDir, ended chan error) (*pty.Client, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		client, err := pty.Dial(ctx, dir.Socket)
		if err == nil {
			return client, nil
		}
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err // for whoever waits for it
			return nil, errors.Join(err, pty.ErrNotRunning)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func shown(lines []string) (out []string) {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			out = append(out, term.CleanLine(line))
		}
	}
	return out[max(len(out)-shownLines, 0):]
}

func printFinding(a *app.App, f finding) {
	out, t := a.Streams.Out, a.Theme
	mark := t.Good.Render("✓")
	if !f.Ready {
		mark = t.Bad.Render("✗")
	}
	fmt.Fprintf(out, "%s %s %s\n", mark, t.Strong.Render(f.Adapter), f.Version)
	fmt.Fprintf(out, "  started   %s\n", term.CleanLine(strings.Join(f.Command, " ")))
	if f.Ready {
		fmt.Fprintf(out, "  ready     known by %s\n", f.Source)
	}
	if f.Waiting != nil {
		fmt.Fprintf(out, "  waits     for a person: %s (%s)\n", term.CleanLine(f.Waiting.Text), f.Waiting.Source)
	}
	signals := make([]string, len(f.Signals))
	for i, s := range f.Signals {
		signals[i] = string(s)
	}
	if len(signals) == 0 {
		signals = []string{"none yet"}
	}
	fmt.Fprintf(out, "  signals   %s\n", strings.Join(signals, ", "))
	for _, line := range f.Screen {
		fmt.Fprintf(out, "  %s %s\n", t.Dim.Render("│"), line)
	}
}
