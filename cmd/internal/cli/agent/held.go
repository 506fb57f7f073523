package agent

import (
	"context"
	"log/slog"
	"sync"

	"muntin/cmd/internal/cli/app"
	"muntin/tmux"
)

// A heldMark shows on the pane's border that a message waits for the person in
// the pane. The supervisor must not wait for tmux, so a goroutine asks it, for
// the latest state only, and opens its client with the first.
type heldMark struct {
	app    *app.App
	socket string
	log    *slog.Logger

	news chan bool
	done sync.WaitGroup
}

// showHeld begins to show it. socket is that of the run's tmux server.
func showHeld(ctx context.Context, a *app.App, socket string, log *slog.Logger) *heldMark {
	h := &heldMark{app: a, socket: socket, log: log, news: make(chan bool, 1)}
	h.done.Go(func() {
		for on := range h.news {
			if err := h.show(ctx, on); err != nil {
				h.log.Warn("showing that a message is held", "error", err)
			}
		}
	})
	return h
}

func (h *heldMark) show(ctx context.Context, on bool) error {
	pane := h.app.Getenv("TMUX_PANE")
	if pane == "" {
		return nil
	}
	server, err := h.app.Tmux(ctx, h.socket)
	if err != nil || !server.Inside(h.app.Environ) {
		return err
	}
	meta := map[string]string{"held": ""}
	if on {
		meta["held"] = "held"
	}
	return server.SetPaneMeta(ctx, tmux.PaneRef{Epoch: server.Epoch(), ID: tmux.PaneID(pane)}, meta)
}

// set gives the latest state. Only one goroutine calls it.
func (h *heldMark) set(on bool) {
	select {
	case <-h.news: // an older state that nobody has shown yet
	default:
	}
	h.news <- on
}

func (h *heldMark) close() {
	close(h.news)
	h.done.Wait()
}
