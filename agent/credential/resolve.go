package credential

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muntin/agent/llm"
	"muntin/internal/proc"
)

// commandTimeout bounds a command that prints a key: a person may have to unlock
// a store first.
const commandTimeout = 2 * time.Minute

// Sources say where keys may come from.
type Sources struct {
	Store   *Store              // nil: none
	Getenv  func(string) string // looks a variable up; "" when it is not set
	Environ []string            // of the commands; nil: this process's
	Now     func() time.Time    // default time.Now

	// Renew gives a login that ends soon anew; nil: none is renewed. Its context
	// outlives the caller's.
	Renew func(context.Context, Credential) (Credential, error)
	// Go starts a renewal, which goes on when nobody waits for it any more; whoever
	// gives it waits before the process ends. Default: the caller waits.
	Go func(func())
}

// A Resolver finds keys. It may be used from several goroutines. What a command
// printed is kept for the life of the resolver; a failure is not.
type Resolver struct {
	from Sources

	mu       sync.Mutex // guards commands
	commands map[string]*command
}

// a command is one that prints a key. Its lock is held while it runs, so that it
// runs once however many ask.
type command struct {
	mu   sync.Mutex
	done bool
	text string
}

// NewResolver makes a resolver.
func NewResolver(from Sources) *Resolver {
	if from.Now == nil {
		from.Now = time.Now
	}
	if from.Go == nil {
		from.Go = func(work func()) { work() }
	}
	return &Resolver{from: from, commands: map[string]*command{}}
}

// A Want is the key that is looked for.
type Want struct {
	Provider string
	Given    string   // on the command line
	Setting  string   // of the settings: $NAME, ${NAME}, !command or the key itself
	Env      []string // variables, in their order
}

// A Source says where a key is from.
type Source string

// The sources, in their order.
const (
	FromNowhere     Source = ""
	FromGiven       Source = "command line"
	FromStore       Source = "stored"
	FromSettings    Source = "settings"
	FromEnvironment Source = "environment"
)

// Find tells where the key would come from, without running a command. An error is
// one of reading the store.
func (r *Resolver) Find(w Want) (Source, error) {
	if w.Given != "" {
		return FromGiven, nil
	}
	if r.from.Store != nil {
		_, ok, err := r.from.Store.Get(w.Provider)
		if err != nil || ok {
			return FromStore, err
		}
	}
	if w.Setting != "" {
		return FromSettings, nil
	}
	for _, name := range w.Env {
		if r.from.Getenv(name) != "" {
			return FromEnvironment, nil
		}
	}
	return FromNowhere, nil
}

// Key gives the key, or "" with FromNowhere when there is none.
func (r *Resolver) Key(ctx context.Context, w Want) (string, Source, error) {
	source, err := r.Find(w)
	if err != nil {
		return "", source, err
	}
	key := ""
	switch source {
	case FromGiven:
		key = w.Given
	case FromStore:
		key, err = r.stored(ctx, w.Provider)
	case FromSettings:
		key, err = r.Expand(ctx, w.Setting)
	case FromEnvironment:
		for _, name := range w.Env {
			if key = r.from.Getenv(name); key != "" {
				break
			}
		}
	}
	if err != nil {
		return "", source, fmt.Errorf("the key of %s (%s): %w", w.Provider, source, err)
	}
	return strings.TrimSpace(key), source, nil
}

// Func gives a KeyFunc for requests. Each asks anew, so that a key that was stored
// meanwhile counts.
func (r *Resolver) Func(w Want) llm.KeyFunc {
	return func(ctx context.Context) (string, error) {
		key, _, err := r.Key(ctx, w)
		return key, err
	}
}

func (r *Resolver) stored(ctx context.Context, provider string) (string, error) {
	c, ok, err := r.from.Store.Get(provider)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", errors.New("it was removed just now")
	case c.Type == TypeOAuth:
		return r.access(ctx, provider, c)
	case strings.HasPrefix(c.Key, "!"):
		return r.run(ctx, c.Key[1:])
	}
	return c.Key, nil
}

// Expand gives what a value of the settings stands for: !command what the command
// prints, $NAME and ${NAME} a variable, $$ and $! the characters.
func (r *Resolver) Expand(ctx context.Context, value string) (string, error) {
	if line, ok := strings.CutPrefix(value, "!"); ok {
		return r.run(ctx, line)
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(value, "$")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, rest, err := variable(after)
		switch {
		case err != nil:
			return "", err
		case name == "":
			out.WriteString(after[:1])
			rest = after[1:]
		case r.from.Getenv(name) == "":
			return "", fmt.Errorf("$%s is not set", name)
		default:
			out.WriteString(r.from.Getenv(name))
		}
		value = rest
	}
}

// variable takes the name off the text after a dollar sign. An empty name stands
// for an escaped character.
func variable(text string) (name, rest string, err error) {
	if strings.HasPrefix(text, "$") || strings.HasPrefix(text, "!") {
		return "", "", nil
	}
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		name, rest, ok = strings.Cut(inner, "}")
		if !ok || name == "" {
			return "", "", errors.New("after ${ a name and } are missing")
		}
		return name, rest, nil
	}
	n := 0
	for n < len(text) && (text[n] == '_' || text[n] >= 'A' && text[n] <= 'Z' || text[n] >= 'a' && text[n] <= 'z' || n > 0 && text[n] >= '0' && text[n] <= '9') {
		n++
	}
	if n == 0 {
		return "", "", errors.New("after $ a name is missing; a dollar sign itself is written $$")
	}
	return text[:n], text[n:], nil
}

// run gives what a command prints. The line is the user's own and goes to a shell
// as it is. Its error shows nothing of what it printed.
func (r *Resolver) run(ctx context.Context, line string) (string, error) {
	r.mu.Lock()
	c := r.commands[line]
	if c == nil {
		c = &command{}
		r.commands[line] = c
	}
	r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return c.text, nil
	}
	res, err := proc.Run(ctx, proc.Spec{Argv: []string{"sh", "-c", line}, Env: r.from.Environ, Timeout: commandTimeout, Reap: true})
	if _, ran := errors.AsType[*proc.ExitError](err); ran {
		return "", fmt.Errorf("its command failed: %s", res.Ending())
	}
	if err != nil {
		return "", fmt.Errorf("running its command: %w", err)
	}
	text := strings.TrimSpace(string(res.Stdout))
	if text == "" {
		return "", errors.New("its command printed nothing")
	}
	c.done, c.text = true, text
	return text, nil
}
