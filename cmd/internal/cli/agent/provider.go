package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"muntin/agent/extension"
	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/scripted"
	"muntin/agent/session"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/models"
	"muntin/internal/durable"
	"muntin/recipes/builtin"
)

// newModel makes the model that a name asks for, of a host's extensions before all
// others; a level of thinking at its end is returned beside it. host may be nil.
func newModel(ctx context.Context, o Options, host *extension.Host, name string) (harness.Model, llm.Level, error) {
	a := o.App
	name = cmp.Or(name, a.Getenv("MUNTIN_MODEL"), o.settings.Model)
	if name == "" {
		return harness.Model{}, "", app.Hint(app.Usage("no model is named"), "say --model provider/id, or muntin settings set model provider/id; --model scripted/demo needs no key")
	}
	plain, level := catalog.Split(name)
	if p, known, ok := host.Provider(plain); ok {
		return harness.Model{Provider: p, Name: plain, Known: known}, level, nil
	}
	if id, ok := strings.CutPrefix(name, "scripted/"); ok {
		p, err := script(a, id)
		return harness.Model{Provider: p, Name: name}, "", err
	}
	shop, err := models.NewShop(a)
	if err != nil {
		return harness.Model{}, "", err
	}
	limits, err := deadlines(o)
	if err != nil {
		return harness.Model{}, "", err
	}
	c, err := shop.Open(ctx, models.Options{Name: name, BaseURL: o.BaseURL, APIKey: o.APIKey, Deadlines: limits})
	if err != nil {
		return harness.Model{}, "", err
	}
	known := c.Model
	if known.ContextWindow == 0 && len(known.Input) == 0 && !known.Reasoning { // its name is all that is known
		known = llm.Model{}
	}
	return harness.Model{Provider: c.Provider, Name: c.Name, Known: known}, c.Level, nil
}

// lastModel is the model that a conversation was last held with; "" when there is
// none, or no such file.
func lastModel(file string) string {
	s, err := session.Open(file, session.Options{ReadOnly: true})
	if err != nil {
		return "" // whoever opens it to go on tells why
	}
	defer s.Close()
	provider, model := s.Model()
	if provider == "" || model == "" {
		return ""
	}
	return provider + "/" + model
}

// recorder wraps a model so that what it says is written to a file in the end.
func recorder(o Options, m *harness.Model) (write func() error, err error) {
	if o.Record == "" {
		return func() error { return nil }, nil
	}
	shop, err := models.NewShop(o.App)
	if err != nil {
		return nil, err
	}
	secrets := shop.Secrets()
	if len(o.APIKey) >= 8 {
		secrets = append(secrets, o.APIKey)
	}
	r := scripted.Record(m.Provider, secrets, o.App.Now)
	m.Provider = r
	return func() error {
		text, err := r.Script(m.Name)
		if err == nil {
			err = durable.WriteFile(o.Record, text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("writing the recording %s: %w", o.Record, err)
		}
		return nil
	}, nil
}

// deadlines gives those of the flag, over those of the environment.
func deadlines(o Options) (llm.Deadlines, error) {
	var all llm.Deadlines
	for _, from := range []struct{ name, text string }{
		{"--deadlines", o.Deadlines}, {"$MUNTIN_DEADLINES", o.App.Getenv("MUNTIN_DEADLINES")}, {"the setting deadlines", o.settings.Deadlines},
	} {
		d, err := llm.ParseDeadlines(from.text)
		if err != nil {
			return all, app.Usage("%s: %w", from.name, err)
		}
		all = all.Over(d)
	}
	return all, nil
}

// script replays a built-in conversation by name, or one from a file.
// $MUNTIN_SCRIPT_SPEED divides its delays; 0 leaves them out.
func script(a *app.App, name string) (llm.Provider, error) {
	speed := 1.0
	if s := a.Getenv("MUNTIN_SCRIPT_SPEED"); s != "" {
		var err error
		if speed, err = strconv.ParseFloat(s, 64); err != nil || speed < 0 {
			return nil, app.Usage("MUNTIN_SCRIPT_SPEED=%q: want a number that is not negative", s)
		}
	}
	data, err := builtin.Script(name)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(name, "./") {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, app.Hint(fmt.Errorf("reading the script of model scripted/%s: %w", name, err), "a file needs its path: scripted/./talk.yaml or scripted//abs/talk.yaml")
	}
	parsed, err := scripted.Parse(name, data)
	if err != nil {
		return nil, &app.ExitError{Code: app.ExitUsage, Err: err}
	}
	return scripted.New(parsed, scripted.Options{Speed: speed, Now: a.Now}), nil
}
