// Package notify tells people and programs of a run's events: it carries out the
// hooks and notifications of a recipe. Nothing here decides: what comes in is told,
// at most so often, and what goes wrong is an error.
package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"muntin/internal/proc"
	"muntin/orchestrator"
	"muntin/recipes"
)

const (
	// hookTime is how long a hook, or the program of a notification, may take.
	hookTime = time.Minute
	// postTime is how long a webhook's server may take.
	postTime = 10 * time.Second
	// keptOutput is how much of a program's output the log keeps, its end.
	keptOutput = 8 << 10
	// atOnce bounds the programs that run at once.
	atOnce = 4
	// most and window bound how often a person is told by one way; what is over is
	// counted and said with the next. Hooks run each time.
	most   = 6
	window = time.Minute
)

// A Messenger shows a line on the terminals that look at a run.
type Messenger interface {
	Message(ctx context.Context, session, text string) error
}

// Options say what is told to whom.
type Options struct {
	Recipe    *recipes.Recipe // its hooks and notify
	Run       orchestrator.Run
	Environ   []string     // of programs
	Messenger Messenger    // of `by: tmux`; may be nil
	Terminal  io.Writer    // of the board's pane: bells and OSC 9; may be nil
	Log       *slog.Logger // has the output of programs
	Now       func() time.Time
}

// A Notifier carries out a recipe's hooks and notifications.
type Notifier struct {
	Options
	client  *http.Client
	running chan struct{} // bounds programs at work

	mu     sync.Mutex // guards what follows
	recent [][]time.Time
	held   []int // how many were not told, by notification
}

// New makes the Notifier of a run.
func New(o Options) *Notifier {
	n := len(o.Recipe.Notify)
	return &Notifier{
		// What is posted goes to the address that the recipe names, and nowhere else.
		Options: o, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		running: make(chan struct{}, atOnce), recent: make([][]time.Time, n), held: make([]int, n),
	}
}

// Notify implements orchestrator.Notifier.
func (n *Notifier) Notify(ctx context.Context, e orchestrator.Notice) error {
	var errs []error
	for _, h := range n.Recipe.Hooks {
		if h.On == e.Event {
			errs = append(errs, wrap("hook", n.program(ctx, h.Run, e)))
		}
	}
	for i := range n.Recipe.Notify {
		way := n.Recipe.Notify[i]
		if !slices.Contains(way.On, string(e.Event)) {
			continue
		}
		more, ok := n.allow(i)
		if !ok {
			continue
		}
		told := e
		if more > 0 {
			told.Text += fmt.Sprintf(" (and %d more)", more)
		}
		errs = append(errs, wrap(way.By, n.tell(ctx, way, told)))
	}
	return errors.Join(errs...)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// allow tells whether a person may be told now, and how many were held back.
func (n *Notifier) allow(i int) (more int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.Now()
	n.recent[i] = slices.DeleteFunc(n.recent[i], func(t time.Time) bool { return now.Sub(t) >= window })
	if len(n.recent[i]) >= most {
		n.held[i]++
		return 0, false
	}
	n.recent[i] = append(n.recent[i], now)
	more, n.held[i] = n.held[i], 0
	return more, true
}

func (n *Notifier) tell(ctx context.Context, way recipes.Notify, e orchestrator.Notice) error {
	switch way.By {
	case recipes.NotifyBell:
		return n.write("\a")
	case recipes.NotifyTmux:
		if n.Messenger == nil {
			return errors.New("there is no tmux server to say it with")
		}
		return n.Messenger.Message(ctx, n.Run.Session, n.Run.Name+": "+e.Text)
	case recipes.NotifyDesktop:
		return n.desktop(ctx, e)
	case recipes.NotifyCommand:
		return n.program(ctx, way.Run, e)
	case recipes.NotifyWebhook:
		return n.post(ctx, way.URL, e)
	}
	return fmt.Errorf("unknown way %q", way.By)
}

// write writes to the board's terminal, in one piece: the board draws there too.
func (n *Notifier) write(s string) error {
	if n.Terminal == nil {
		return errors.New("there is no terminal")
	}
	if _, err := io.WriteString(n.Terminal, s); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}

// program runs a hook or the program of a notification, in the repository.
func (n *Notifier) program(ctx context.Context, argv []string, e orchestrator.Notice) error {
	select {
	case n.running <- struct{}{}:
		defer func() { <-n.running }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	env := append(slices.Clone(n.Environ),
		"MUNTIN_RUN="+n.Run.Name, "MUNTIN_AGENT="+e.Agent, "MUNTIN_TASK="+e.Task,
		"MUNTIN_EVENT="+string(e.Event), "MUNTIN_TEXT="+e.Text, "MUNTIN_REPO="+n.Run.Root)
	res, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: n.Run.Root, Env: env, Timeout: hookTime, Merge: true, Keep: keptOutput, Reap: true})
	n.Log.Info("a program was run", "event", e.Event, "agent", e.Agent, "task", e.Task, "argv", argv,
		"code", res.Code, "time", res.Duration, "output", string(res.Stdout), "error", text(err))
	var exit *proc.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %s", argv[0], exit.Result.Ending())
	}
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
