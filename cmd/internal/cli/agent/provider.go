package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/openai"
	"muntin/agent/llm/scripted"
	"muntin/cmd/internal/cli/app"
	"muntin/recipes/builtin"
)

// newProvider makes the provider that a model's name, provider/id, begins with.
func newProvider(a *app.App, model string) (llm.Provider, error) {
	if model == "" {
		return nil, app.Hint(app.Usage("no model is named"), "say --model openai/<id> or set $MUNTIN_MODEL; --model scripted/demo needs no key")
	}
	provider, id, ok := strings.Cut(model, "/")
	if !ok || id == "" {
		return nil, app.Hint(app.Usage("model %q: want provider/id", model), "for example openai/gpt-5 or scripted/demo")
	}
	switch provider {
	case "openai":
		return openAI(a)
	case "scripted":
		return script(a, id)
	}
	return nil, app.Hint(app.Usage("model %q: there is no provider %q", model, provider), "the providers are openai and scripted")
}

// openAI speaks to OpenAI or a compatible server. A server of one's own may
// need no key; OpenAI's own does.
func openAI(a *app.App) (llm.Provider, error) {
	base, key := a.Getenv("OPENAI_BASE_URL"), a.Getenv("OPENAI_API_KEY")
	if key == "" && base == "" {
		return nil, app.Hint(errors.New("there is no key for openai"), "set $OPENAI_API_KEY, or $OPENAI_BASE_URL for a server that needs none")
	}
	return openai.New(openai.Options{Endpoint: llm.Endpoint{BaseURL: base, Key: llm.StaticKey(key), Now: a.Now}}), nil
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
