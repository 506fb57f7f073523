package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muntin/cmd/internal/cli/app"
	"muntin/tmux"
)

// hostile is a prompt in which each word means something to tmux, to a shell
// or to a terminal. It must arrive byte by byte.
const hostile = "-x ; #(date) #{pid} #[fg=red] $HOME `id` ~ %H \"q\" 'q' \\ {} Enter é 日本 👩‍👩‍👧\n\ttwo;"

const (
	proveDeadline = 10 * time.Second
	provePoll     = 20 * time.Millisecond
)

// A proof is the doctor's trial of tmux: one pane on one server, in which a
// reader of ours runs. Its files are in a folder of its own.
type proof struct {
	server *tmux.Server
	own    bool // the server was started for this
	name   string
	dir    string
	id     tmux.SessionID
	window tmux.WindowID
	pane   tmux.PaneRef
}

// proveTmux shows that panes work with the person's own tmux and
// configuration: on a server started for it on a private socket, or on the
// person's running one. Nothing of it is left behind.
func proveTmux(ctx context.Context, a *app.App, running bool) []Finding {
	if _, err := a.Tmux(ctx, ""); err != nil {
		return nil // said in the line about tmux
	}
	dir, err := os.MkdirTemp("", "mt")
	if err != nil {
		return []Finding{{Name: "tmux: start", Grade: Bad, Found: err.Error(), Do: "make TMPDIR a folder that can be written"}}
	}
	p := &proof{name: "muntin-doctor-" + rand.Text()[:6], dir: dir, own: !running}
	list := p.run(ctx, a)
	if err := errors.Join(p.clear(ctx), os.RemoveAll(dir)); err != nil {
		list = append(list, Finding{
			Name: "tmux: clean-up", Grade: Warn, Found: err.Error(),
			Do: "look for tmux session " + p.name + " and folder " + dir,
		})
	}
	return list
}

// run takes the steps, each of which needs those before it.
func (p *proof) run(ctx context.Context, a *app.App) []Finding {
	config := userConfig(a)
	where := "a new server, no configuration of yours"
	switch {
	case !p.own:
		where = "your running server"
	case config != "":
		where = "a new server with " + config
	}
	steps := []struct {
		name string
		do   string
		try  func() (string, error)
	}{
		{"pane", "run `tmux new-session` by hand: a pane does not start, or in another folder", func() (string, error) {
			return where, p.start(ctx, a, config)
		}},
		{"output", "programs in panes start but what they write is not seen: look at default-terminal and the hooks in your tmux configuration", func() (string, error) {
			return "a program's output is seen", p.shows(ctx, readerReady)
		}},
		{"input", "prompts would arrive changed: look at hooks and key tables in your tmux configuration, or use muntin's own server", func() (string, error) {
			return fmt.Sprintf("a prompt of %d hostile bytes arrived as it was", len(hostile)), p.deliver(ctx)
		}},
		{"resize", "look at window-size and the hooks in your tmux configuration", func() (string, error) { return p.resize(ctx) }},
		{"exit", "look at remain-on-exit and the pane-died hook in your tmux configuration", func() (string, error) {
			return "a program's end and its status are seen", p.end(ctx)
		}},
	}
	var list []Finding
	for _, s := range steps {
		found, err := s.try()
		if err != nil {
			return append(list, Finding{Name: "tmux: " + s.name, Grade: Bad, Found: err.Error(), Do: s.do})
		}
		list = append(list, Finding{Name: "tmux: " + s.name, Grade: Good, Found: found})
	}
	return list
}

// userConfig is the configuration that the person's tmux reads (tmux(1), FILES).
func userConfig(a *app.App) string {
	home := a.Getenv("HOME")
	places := []string{filepath.Join(home, ".tmux.conf")}
	if xdg := a.Getenv("XDG_CONFIG_HOME"); xdg != "" {
		places = append(places, filepath.Join(xdg, "tmux", "tmux.conf"))
	}
	places = append(places, filepath.Join(home, ".config", "tmux", "tmux.conf"), "/etc/tmux.conf")
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func (p *proof) start(ctx context.Context, a *app.App, config string) error {
	o := tmux.Options{Socket: filepath.Join(p.dir, "s"), ConfigDir: p.dir, Env: a.Environ, UserConfig: config}
	if !p.own {
		o = tmux.Options{Socket: runningSocket(a), Env: a.Environ}
	}
	server, err := tmux.Open(ctx, o)
	if err != nil {
		return err
	}
	if !p.own && server.Epoch().PID == 0 {
		return fmt.Errorf("%w on %s", tmux.ErrNoServer, server.Socket())
	}
	p.server = server
	p.id, p.window, p.pane, err = server.NewSession(ctx, tmux.SessionSpec{
		Name: p.name, Cols: 100, Rows: 30, Dir: p.dir, Argv: []string{a.Self, "doctor", "reader", p.file()},
	})
	return err
}

// runningSocket is the socket of the server this process is in, or of the one
// that plain `tmux` uses.
func runningSocket(a *app.App) string {
	if path, _, ok := strings.Cut(a.Getenv("TMUX"), ","); ok && path != "" {
		return path
	}
	return "default"
}

func (p *proof) file() string { return filepath.Join(p.dir, "got") }

// until calls done until it is true; what says what was waited for.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, proveDeadline)
	defer cancel()
	tick := time.NewTicker(provePoll)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s", what, proveDeadline)
		case <-tick.C:
		}
	}
}

func (p *proof) shows(ctx context.Context, text string) error {
	return until(ctx, "waiting for "+text+" on the pane", func() (bool, error) {
		screen, err := p.server.Capture(ctx, p.pane, tmux.CaptureOptions{})
		return strings.Contains(screen, text), err
	})
}

func (p *proof) deliver(ctx context.Context) error {
	if err := p.server.Paste(ctx, p.pane, hostile); err != nil {
		return err
	}
	if err := p.server.SendKeys(ctx, p.pane, []byte("\r")); err != nil {
		return err
	}
	want := "\x1b[200~" + hostile + "\x1b[201~\r"
	var got []byte
	err := until(ctx, "waiting for the prompt", func() (bool, error) {
		var err error
		got, err = os.ReadFile(p.file())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return string(got) == want, err
	})
	if err != nil {
		return fmt.Errorf("%w: %d bytes of %d arrived, %.60q", err, len(got), len(want), got)
	}
	return nil
}

// resize compares what tmux says of the pane with what the program was told:
// a border or a status line may take a row.
func (p *proof) resize(ctx context.Context) (string, error) {
	const cols, rows = 90, 25
	if err := p.server.ResizeWindow(ctx, p.window, cols, rows); err != nil {
		return "", err
	}
	sn, err := p.server.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	pane, err := sn.Pane(p.pane)
	if err != nil {
		return "", err
	}
	if pane.Cols != cols {
		return "", fmt.Errorf("a window resized to %dx%d has a pane of %dx%d", cols, rows, pane.Cols, pane.Rows)
	}
	return fmt.Sprintf("a program is told its new size, %dx%d", pane.Cols, pane.Rows), p.shows(ctx, sizeLine(pane.Cols, pane.Rows))
}

func (p *proof) end(ctx context.Context) error {
	if err := p.server.SendKeys(ctx, p.pane, []byte{readerEnd}); err != nil {
		return err
	}
	return until(ctx, "waiting for the end of the program", func() (bool, error) {
		sn, err := p.server.Snapshot(ctx)
		if err != nil {
			return false, err
		}
		pane, err := sn.Pane(p.pane)
		if err == nil && pane.Dead && (pane.Status > 0 || pane.Signal != "") {
			err = fmt.Errorf("it ended with status %d%s", pane.Status, pane.Signal)
		}
		return err == nil && pane.Dead && pane.Status == 0, err
	})
}

const clearTimeout = 10 * time.Second

// clear takes away the session, and the server if it was started for this:
// even what the person's configuration made on it is nobody's.
func (p *proof) clear(ctx context.Context) error {
	if p.server == nil || p.server.Epoch().PID == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
	defer cancel()
	if !p.own {
		err := p.server.KillSession(ctx, p.id, p.name)
		if p.id == "" || errors.Is(err, tmux.ErrNoSuchSession) || errors.Is(err, tmux.ErrNoServer) {
			return nil
		}
		return err
	}
	_, _ = p.server.Do(ctx, tmux.Cmd{"kill-server"}) // it cannot answer any more
	return until(ctx, "waiting for the end of the doctor's tmux server", func() (bool, error) {
		_, err := p.server.Do(ctx, tmux.Cmd{"list-sessions"})
		gone := errors.Is(err, tmux.ErrNoServer) || errors.Is(err, tmux.ErrStale)
		return gone, nil
	})
}
