package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/scripted"
	"muntin/cmd/internal/cli/app"
	"muntin/cmd/internal/cli/models"
	"muntin/recipes/builtin"
)

// newProvider makes the provider that a model's name asks for, and gives the
// model's full name.
func newProvider(ctx context.Context, o Options) (llm.Provider, string, error) {
	a, model := o.App, o.Model
	if model == "" {
		model = a.Getenv("MUNTIN_MODEL")
	}
	if model == "" {
		return nil, "", app.Hint(app.Usage("no model is named"), "say --model provider/id or set $MUNTIN_MODEL; --model scripted/demo needs no key")
	}
	if id, ok := strings.CutPrefix(model, "scripted/"); ok {
		p, err := script(a, id)
		return p, model, err
	}
	shop, err := models.NewShop(a)
	if err != nil {
		return nil, "", err
	}
	limits, err := deadlines(o)
	if err != nil {
		return nil, "", err
	}
	chosen, err := shop.Open(ctx, models.Options{Name: model, BaseURL: o.BaseURL, APIKey: o.APIKey, Deadlines: limits})
	if err != nil {
		return nil, "", err
	}
	return llm.WithLevel(chosen.Provider, llm.Level(o.Thinking)), chosen.Name, nil
}

// deadlines gives those of the flag, over those of the environment.
func deadlines(o Options) (llm.Deadlines, error) {
	var all llm.Deadlines
	for _, from := range []struct{ name, text string }{
		{"--deadlines", o.Deadlines}, {"$MUNTIN_DEADLINES", o.App.Getenv("MUNTIN_DEADLINES")},
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
