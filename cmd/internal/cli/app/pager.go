package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"muntin/internal/proc"
)

// Paged runs show, whose output goes through a pager when it goes to a
// terminal, as git's does: $PAGER, else less; none for an empty one and for cat. The pager is
// run by its words, without a shell. Who leaves it early ends show without an error.
func (a *App) Paged(ctx context.Context, show func() error) error {
	argv := a.pager()
	if !a.Streams.OutTTY || len(argv) == 0 {
		return show()
	}
	// Ctrl-C is the pager's while it runs.
	pagerCtx := context.WithoutCancel(ctx)
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := proc.Run(pagerCtx, proc.Spec{
			Argv: argv, Env: a.pagerEnv(), Stdin: r, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: true,
		})
		_ = r.Close() // show must not wait for a pager that has gone
		ended <- err
	}()
	direct := a.Streams
	a.Streams = direct.Through(w)
	err := show()
	a.Streams = direct
	_ = w.Close() // a pipe in memory
	pagerErr := <-ended
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	if err == nil {
		err = pagerErr
	}
	return err
}

func (a *App) pager() []string {
	words := []string{"less"}
	for _, kv := range a.Environ {
		if v, ok := strings.CutPrefix(kv, "PAGER="); ok {
			words = strings.Fields(v)
		}
	}
	if len(words) == 0 || len(words) == 1 && words[0] == "cat" {
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	return words
}

// pagerEnv is the environment of the pager, with what git sets if it is not set.
func (a *App) pagerEnv() []string {
	env := a.Environ
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if a.Getenv(name) == "" {
			env = append(env[:len(env):len(env)], name+"="+value)
		}
	}
	return env
}
