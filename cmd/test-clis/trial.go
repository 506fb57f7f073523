package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muntin/agent/adapter"
	"muntin/agent/llm/llmtest"
	"muntin/agent/pty"
	"muntin/internal/id"
	"muntin/internal/proc"
	"muntin/internal/state"
)

// A trial is one CLI on its way through the steps.
type trial struct {
	o     options
	p     product
	at    place
	env   []string
	dirs  state.RunDir
	model *llmtest.Server
	row   row
}

const runName = "trial"

// try takes a CLI through all steps. A step that fails is a cell of the row;
// the steps that need it are not taken.
func try(ctx context.Context, o options, p product) row {
	t := &trial{o: o, p: p, row: row{name: p.name}}
	if err := t.steps(ctx); err != nil {
		t.row.failed = err.Error()
	}
	return t.row
}

func (t *trial) steps(ctx context.Context) error {
	base, err := os.UserCacheDir() // not the temp folder: Codex keeps no helpers there
	if err == nil {
		err = os.MkdirAll(base, 0o700)
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, "mt")
	if err != nil {
		return err
	}
	if !t.o.keep {
		defer func() {
			if err := os.RemoveAll(dir); err != nil { // a helper of the CLI's may still write; it has nothing to do with the trial
				fmt.Fprintln(os.Stderr, "left behind:", err)
			}
		}()
	}
	t.model = llmtest.NewServer(llmtest.Script{Choose: choose})
	defer t.model.Close()
	if err := t.prepare(ctx, dir); err != nil {
		return err
	}
	defer t.down(ctx)
	if _, err := t.run(ctx, t.o.muntin, "up", filepath.Join(t.at.home, "recipe.yaml"), "--name", runName, "--wait", "1s"); err != nil && !strings.Contains(err.Error(), "not ready") {
		fmt.Fprintln(os.Stderr, t.p.name+":", err) // it waits for the agents no longer than that; the steps do
	}
	return t.take(ctx)
}

// take takes the steps on the agents.
func (t *trial) take(ctx context.Context) error {
	work, err := t.agent(ctx, "work")
	if err != nil {
		return err
	}
	defer work.close()
	ready, err := work.await(ctx, "ready", func(e pty.Event) bool { return e.Ready != nil })
	if err != nil {
		return err
	}
	t.row.ready = string(ready.Ready.Source)
	t.looks(ctx, work, "at rest", func(s adapter.Seen) bool { return s.Composer && s.Sight.Means != adapter.MeansWorking })
	if err := t.first(ctx, work); err != nil {
		return err
	}
	if err := t.second(ctx, work); err != nil {
		return err
	}
	if err := t.resume(ctx, work); err != nil {
		return err
	}
	return t.approval(ctx)
}

// first is a turn that writes a file.
func (t *trial) first(ctx context.Context, a *agent) error {
	file := filepath.Join(t.at.work, "one.txt")
	end, took, err := a.turn(ctx, "Please write the file. [[write:"+file+"]]")
	if err != nil {
		return fmt.Errorf("first prompt: %w", err)
	}
	t.row.accepted, t.row.end = took, string(end.TurnEnd.Source)
	if text, err := os.ReadFile(file); err != nil || string(text) != content {
		return fmt.Errorf("first prompt: the file is not there as it should be: %q (%w)", text, err)
	}
	t.row.wrote = true
	t.row.usage = end.TurnEnd.Usage != nil
	t.row.checkpoint = end.TurnEnd.Checkpoint != nil
	return nil
}

// second sends a prompt while a turn runs.
func (t *trial) second(ctx context.Context, a *agent) error {
	slow, next := filepath.Join(t.at.work, "two.txt"), filepath.Join(t.at.work, "three.txt")
	first, err := a.send(ctx, "Now something slow. [[slow:"+slow+"]]")
	if err != nil {
		return err
	}
	if _, err := a.await(ctx, "the slow turn's start", startOf(first)); err != nil {
		return err
	}
	second, err := a.send(ctx, "And another file. [[write:"+next+"]]")
	if err != nil {
		return err
	}
	for _, msg := range []string{first, second} {
		end, err := a.await(ctx, "the end of a turn", endOf(msg))
		if err != nil {
			return fmt.Errorf("a prompt while it works: %w", err)
		}
		if end.TurnEnd.Reason != pty.TurnDone {
			return fmt.Errorf("a prompt while it works: the turn ended %s: %s", end.TurnEnd.Reason, end.TurnEnd.Error)
		}
		file := map[string]string{first: slow, second: next}[msg]
		if text, err := os.ReadFile(file); err != nil || string(text) != content {
			return fmt.Errorf("a prompt while it works: its turn was said to be over without %s (%w)", filepath.Base(file), err)
		}
		t.row.checkpoint = t.row.checkpoint && end.TurnEnd.Checkpoint != nil
	}
	t.row.second = true
	return nil
}

// resume kills the CLI, starts its supervisor anew and asks for what was said
// before.
func (t *trial) resume(ctx context.Context, a *agent) error {
	start, err := a.last(func(e pty.Event) bool { return e.Start != nil })
	if err != nil {
		return err
	}
	if err := syscall.Kill(start.Start.ChildPID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing it: %w", err)
	}
	if _, err := a.await(ctx, "its end", func(e pty.Event) bool { return e.Exit != nil }); err != nil {
		return err
	}
	a.close()
	if _, err := t.run(ctx, "tmux", "-S", t.socket(), "new-window", "-d", t.o.muntin, "pane", runName, "work"); err != nil {
		return err
	}
	again, err := t.agent(ctx, "work")
	if err != nil {
		return err
	}
	defer again.close()
	again.seq = a.seq
	if _, err := again.await(ctx, "ready again", func(e pty.Event) bool { return e.Ready != nil }); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	before := len(t.model.Requests())
	if _, _, err := again.turn(ctx, "Was there a first file? [[recall:one.txt]]"); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, r := range t.model.Requests()[before:] {
		if strings.Contains(string(r.Body), "/one.txt]]") {
			t.row.resumed = true
		}
	}
	return nil
}

// asked is the file that the agent that asks is to write.
func (t *trial) asked() string { return filepath.Join(t.at.work, "asked.txt") }

// approval has the agent that asks write a file, and says yes at its pane.
func (t *trial) approval(ctx context.Context) error {
	if t.p.ask == nil {
		t.row.approval = "has none"
		return nil
	}
	a, err := t.agent(ctx, "ask")
	if err != nil {
		return err
	}
	defer a.close()
	// It has had its prompt since the start.
	file := t.asked()
	given, err := a.await(ctx, "its first prompt", func(e pty.Event) bool {
		return e.Message != nil && e.Message.From == "recipe" && e.Message.State == pty.StateDelivered
	})
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	msg := given.Message.ID
	t.row.first = string(given.Message.Evidence)
	waiting, err := a.await(ctx, "its asking", func(e pty.Event) bool { return e.Waiting != nil && e.Waiting.For != pty.WaitNothing })
	if err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	if _, err := os.Stat(file); err == nil {
		return errors.New("approval: it wrote the file before it was allowed to")
	}
	t.row.approval = string(waiting.Waiting.Source)
	t.looks(ctx, a, "asking", func(s adapter.Seen) bool { return s.Sight.Means == adapter.MeansApproval })
	pane, err := t.pane(ctx, a)
	if err != nil {
		return err
	}
	if _, err := t.run(ctx, "tmux", "-S", t.socket(), "send-keys", "-t", pane, t.p.approve); err != nil {
		return err
	}
	if _, err := a.await(ctx, "the end of the turn", endOf(msg)); err != nil {
		return fmt.Errorf("approval: after the yes: %w", err)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("approval: after the yes: %w", err)
	}
	return nil
}

// looks waits until the screen alone tells what fits, and says so in the row.
func (t *trial) looks(ctx context.Context, a *agent, what string, fits func(adapter.Seen) bool) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	ad, _ := adapter.Lookup(t.p.name)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	shown := ""
	for ad.Composer != "" {
		if screen, err := a.client.Screen(ctx, false); err == nil {
			shown = strings.TrimSpace(strings.Join(screen.Lines, "\n"))
			if fits(ad.See(screen.Lines, "")) {
				t.row.screen = append(t.row.screen, what)
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintf(os.Stderr, "%s %s is not known by its screen:\n%s\n", t.p.name, what, shown)
			return
		}
	}
}

// settle is how long a screen may take to be drawn.
const settle = 20 * time.Second

func (t *trial) socket() string { return filepath.Join(t.at.home, "t.sock") }

// pane is the pane in which an agent's supervisor runs.
func (t *trial) pane(ctx context.Context, a *agent) (string, error) {
	status, err := a.client.Status(ctx)
	if err != nil {
		return "", err
	}
	out, err := t.run(ctx, "tmux", "-S", t.socket(), "list-panes", "-a", "-F", "#{pane_id} #{pane_pid}")
	for line := range strings.Lines(out) {
		if pane, pid, _ := strings.Cut(strings.TrimSpace(line), " "); pid == strconv.Itoa(status.PID) {
			return pane, nil
		}
	}
	return "", fmt.Errorf("no pane has process %d (%w)", status.PID, err)
}

// prepare makes the folders, the settings, the repository and the recipe.
func (t *trial) prepare(ctx context.Context, dir string) error {
	t.at = place{url: t.model.URL, home: dir, work: filepath.Join(dir, "work")}
	path := filepath.Join(t.o.clis, t.p.name, "node_modules", ".bin") + ":" + os.Getenv("PATH")
	if t.o.node != "" {
		path = t.o.node + ":" + path
	}
	own := t.p.env(t.at)
	t.env = append([]string{
		"HOME=" + dir, "PATH=" + path, "TERM=tmux-256color", "LANG=C.UTF-8", "SHELL=/bin/sh", "GIT_CONFIG_GLOBAL=/dev/null",
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "r"), "MUNTIN_TMUX_SOCKET=" + t.socket(),
	}, own...)
	files := t.p.files(t.at)
	files["work/README.md"] = "A folder to try agents in.\n"
	files["recipe.yaml"] = t.recipe(own)
	files["r/x"] = ""
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "Begin"},
	} {
		if _, err := t.run(ctx, "git", append([]string{"-C", t.at.work}, args...)...); err != nil {
			return err
		}
	}
	if out, err := t.run(ctx, t.p.name, "--version"); err == nil {
		fields := strings.Fields(strings.NewReplacer("(Claude Code)", "", "codex-cli", "").Replace(out))
		if len(fields) > 0 {
			t.row.version = fields[len(fields)-1]
		}
	} else {
		return err
	}
	repo, err := state.FindRepo(t.at.work)
	if err != nil {
		return err
	}
	layout := state.Layout{State: filepath.Join(dir, "state", "muntin"), Runtime: filepath.Join(dir, "r", "muntin")}
	t.dirs = layout.Repo(repo).Run(runName)
	return nil
}

// recipe is a run of one agent that asks for nothing, and one that asks.
func (t *trial) recipe(env []string) string {
	var names []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	agent := func(name, prompt string, command []string) string {
		argv, _ := json.Marshal(command) // JSON is YAML
		list, _ := json.Marshal(names)
		text := fmt.Sprintf("  - name: %s\n    role: assistant\n    isolation: none\n    command: %s\n    env: %s\n", name, argv, list)
		if prompt != "" {
			text += fmt.Sprintf("    prompt: %q\n", prompt)
		}
		return text
	}
	text := "muntin: 1\nname: trial\nagents:\n" + agent("work", "", t.p.all)
	if t.p.ask != nil {
		text += agent("ask", "Please write this one. [[ask:"+t.asked()+"]]", t.p.ask)
	}
	return text
}

// run runs a program in the trial's environment.
func (t *trial) run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.limit)
	defer cancel()
	argv := append([]string{name}, args...)
	if !filepath.IsAbs(name) {
		for _, kv := range t.env {
			if path, ok := strings.CutPrefix(kv, "PATH="); ok {
				argv[0] = look(name, path)
			}
		}
	}
	res, err := proc.Run(ctx, proc.Spec{Argv: argv, Env: t.env, Dir: t.at.work})
	if err != nil {
		return string(res.Stdout), fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return string(res.Stdout), nil
}

func look(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	return name
}

// down ends the run and everything of it.
func (t *trial) down(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.o.limit)
	defer cancel()
	for _, name := range []string{"work", "ask"} {
		if c, err := pty.Dial(ctx, t.dirs.Agent(name).Socket); err == nil {
			_ = c.Stop(ctx) // tmux ends the rest
			_ = c.Close()
		}
	}
	_, _ = t.run(ctx, t.o.muntin, "down", runName)
	_, _ = t.run(ctx, "tmux", "-S", t.socket(), "kill-server")
}

func newMessage(text string) pty.Message {
	now := time.Now()
	return pty.Message{ID: id.New(now), Kind: pty.KindPrompt, Text: text, From: "user", Time: now}
}
