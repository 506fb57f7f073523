package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muntin/agent"
	"muntin/agent/harness"
	"muntin/internal/term"
)

// A Setting is one as it holds.
type Setting struct {
	Name, Value string
	From        string // the file and line that say it; "" for the default
	Doc         string
}

// Settings are the person's, and the project's where it is trusted.
type Settings interface {
	List(ctx context.Context) ([]Setting, error)
	// Set changes the person's own file; nothing holds before the agent is reloaded.
	Set(ctx context.Context, name, value string) error
	// Unset takes a setting out of it.
	Unset(ctx context.Context, name string) error
}

// A TrustState is what is decided for the folder.
type TrustState struct {
	Folder  string
	Trusted bool
	Why     string
	Brings  []string // what it would load
}

// Trust is the person's decision on what the folder brings along.
type Trust interface {
	State(ctx context.Context) (TrustState, error)
	Decide(ctx context.Context, trusted bool) error
	Forget(ctx context.Context) error
}

// again loads all anew and tells of it.
func (l *loop) again(ctx context.Context) (string, error) {
	l.forgetStatuses()
	h := l.Agent()
	problems, err := h.Reload(ctx)
	l.learn()
	if l.opts.Host.Theme != nil {
		l.display.recolour(l.opts.Host.Theme())
	}
	for _, p := range problems {
		l.display.note(l.opts.Theme.Warn.Render(term.CleanLine(p)))
	}
	if err != nil {
		return "", err
	}
	counts := map[string]int{}
	for _, c := range h.Commands() {
		counts[string(c.Kind)]++
	}
	return fmt.Sprintf("Loaded: %s, %s, %s.", plural(len(h.Extensions()), "extension"), plural(counts[string(harness.KindSkill)], "skill"),
		plural(counts[string(harness.KindPrompt)], "prompt template")), nil
}

func (l *loop) reload(ctx context.Context, _ Asker, _ string) (string, error) { return l.again(ctx) }

// settings lists the settings or changes one.
func (l *loop) settings(ctx context.Context, _ Asker, arg string) (string, error) {
	all := l.opts.Host.Settings
	verb, rest, _ := strings.Cut(arg, " ")
	name, value, given := strings.Cut(strings.TrimSpace(rest), " ")
	var err error
	switch {
	case verb == "":
		list, err := all.List(ctx)
		return settingsPage(list), err
	case verb == "set" && name != "" && given:
		err = all.Set(ctx, name, strings.TrimSpace(value))
	case verb == "unset" && name != "" && !given:
		err = all.Unset(ctx, name)
	default:
		return "", fmt.Errorf("%q is not known: /settings, /settings set name value, /settings unset name", arg)
	}
	if err != nil {
		return "", err
	}
	loaded, err := l.again(ctx)
	if errors.Is(err, agent.ErrBusy) {
		return "It is written down, and holds from /reload on.", nil
	}
	if name == "model" || name == "thinking" {
		loaded += " This conversation goes on with its model; /model and /thinking change that."
	}
	return loaded, err
}

func settingsPage(all []Setting) string {
	var b strings.Builder
	b.WriteString("| Setting | Value | What it is |\n|---|---|---|\n")
	for _, s := range all {
		value := s.Value
		if s.From == "" && value != "" {
			value += " (default)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, cell(value), cell(s.Doc))
	}
	b.WriteString("\n`/settings set name value` changes your own file, `/settings unset name` takes it out.\n")
	return b.String()
}

// cell is a text that may stand in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`").Replace(term.CleanLine(text))
}

// trust shows what is decided for the folder, and decides.
func (l *loop) trust(ctx context.Context, _ Asker, arg string) (string, error) {
	t := l.opts.Host.Trust
	if arg == "" {
		var err error
		if arg, err = l.askTrust(ctx); err != nil {
			return "", err
		}
	}
	var err error
	switch arg {
	case "yes", "no":
		err = t.Decide(ctx, arg == "yes")
	case "forget":
		err = t.Forget(ctx)
	default:
		return "", fmt.Errorf("%q is not known: /trust yes, no or forget", arg)
	}
	if err != nil {
		return "", err
	}
	loaded, err := l.again(ctx)
	if err != nil {
		return "", err
	}
	state, err := t.State(ctx)
	return trustLine(state) + "\n\n" + loaded, err
}

func trustLine(s TrustState) string {
	word := "not trusted"
	if s.Trusted {
		word = "trusted"
	}
	return fmt.Sprintf("`%s` is %s: %s.", term.CleanLine(s.Folder), word, term.CleanLine(s.Why))
}

// askTrust shows what is decided and asks for a decision.
func (l *loop) askTrust(ctx context.Context) (string, error) {
	s, err := l.opts.Host.Trust.State(ctx)
	if err != nil {
		return "", err
	}
	body := []string{strings.ReplaceAll(trustLine(s), "`", "")}
	if len(s.Brings) > 0 {
		body = append(append(body, "It brings along:"), s.Brings...)
	}
	body = append(body, "Trust is not a sandbox: what is trusted can make the agent do anything that you can do.")
	q := question{title: "Do you trust this folder?", body: strings.Join(body, "\n"), items: []item{
		{label: "yes", detail: "load what it brings along"}, {label: "no", detail: "do not load it, and do not ask"}, {label: "forget", detail: "ask the next time"},
	}}
	if !s.Trusted {
		q.at = 1
	}
	i, err := l.choose(ctx, q)
	if err != nil {
		return "", err
	}
	return q.items[i].label, nil
}
