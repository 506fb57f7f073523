package source

import (
	"context"
	"errors"
	"slices"
	"time"

	"muntin/agent/pty"
	"muntin/internal/state"
	"muntin/orchestrator"
	"muntin/orchestrator/dash"
)

const (
	// screenEvery is how often a screen is asked for at most while its agent
	// prints: as often as the dashboard can draw.
	screenEvery = time.Second / 60
	// retry is how long to wait before a supervisor that is not there is looked
	// for again.
	retry = 2 * time.Second
	// maxMessages bounds the list of messages.
	maxMessages = 500
)

// Live shows what the agents of a run print and are sent. It is a dash.Live.
type Live struct{ Run orchestrator.Run }

// Screen implements dash.Live. The supervisor says when its agent has printed
// something; then the screen is asked for.
func (l Live) Screen(ctx context.Context, agent string, fn func(dash.Screen)) {
	dir := l.Run.Dir.Agent(agent)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		err := follow(ctx, dir, fn)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, pty.ErrNotRunning):
			fn(dash.Screen{Err: agent + " is not running: `muntin resume` brings it back"})
		case err != nil && !errors.Is(err, pty.ErrLost):
			fn(dash.Screen{Err: err.Error()})
		}
		wait.Reset(retry)
	}
}

// follow shows a screen until its supervisor is gone.
func follow(ctx context.Context, dir state.AgentDir, fn func(dash.Screen)) error {
	client, err := pty.Dial(ctx, dir.Socket)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	printed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- client.Output(ctx, -1, func(pty.Output) error {
			select {
			case printed <- struct{}{}:
			default: // the screen that is to be asked for has it
			}
			return nil
		})
	}()
	stop := func() error { cancel(); return <-ended }
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		screen, err := client.Screen(ctx, true)
		if err != nil {
			_ = stop()
			return err
		}
		fn(dash.Screen{Cols: screen.Cols, Rows: screen.Rows, Lines: screen.Lines})
		pause.Reset(screenEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return stop()
		}
		select {
		case <-printed:
		case err := <-ended:
			cancel()
			return err
		case <-ctx.Done():
			return stop()
		}
	}
}

// Messages implements dash.Live.
func (l Live) Messages(ctx context.Context) ([]dash.Message, error) {
	names, err := l.Run.AgentNames()
	if err != nil {
		return nil, err
	}
	var list []dash.Message
	var errs []error
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		messages, err := pty.Messages(l.Run.Dir.Agent(name))
		errs = append(errs, err)
		for _, m := range messages {
			list = append(list, dash.Message{
				ID: m.ID, Agent: name, From: m.From, Kind: string(m.Kind), State: string(m.State), Why: m.Why, Text: m.Text, Time: m.Time,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b dash.Message) int { return a.Time.Compare(b.Time) })
	return list[max(len(list)-maxMessages, 0):], errors.Join(errs...)
}
