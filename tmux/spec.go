package tmux

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ident "muntin/internal/id"
)

// A SessionSpec says how to make a tmux session. With Argv the session begins
// with a window of one pane that runs it; Spawn can do without. Panes that a
// person opens later start where the first pane did.
type SessionSpec struct {
	Name       string            // see CheckName; must be new
	WindowName string            // of the first window; "": the name of the program
	Cols, Rows int               // size while nobody is attached; 0: 200 by 50
	Dir        string            // absolute, existing; where Argv and panes without a Dir start
	Env        map[string]string // for every pane of the session, also those a person opens; no secrets
	Argv       []string
	Title      string
	Meta       map[string]string // of the session, read back by Snapshot
}

// A WindowSpec says how to make a window.
type WindowSpec struct {
	Name   string // any text; "": the name of the first pane's program
	Layout Layout // "": Tiled
	Panes  []PaneSpec
	// MinCols and MinRows are the smallest pane that is of use; 0: 30 by 6.
	// Panes that do not fit spill over into further windows, see Layout.Spread.
	MinCols, MinRows int
}

// A PaneSpec says what a pane runs.
type PaneSpec struct {
	Argv  []string          // run as it is, without a shell
	Dir   string            // absolute, existing; "": the session's
	Env   map[string]string // for this pane only; no secrets
	Title string            // shown on the pane's border, unlike a title the program sets itself
	Meta  map[string]string // durable facts about the pane, read back by Snapshot
	// CloseOnExit lets the pane go when its program ends. Without it the pane
	// stays, so that its status and its last lines can be read.
	CloseOnExit bool
}

const (
	defaultCols, defaultRows       = 200, 50
	defaultMinCols, defaultMinRows = 30, 6
	maxSide                        = 10000 // tmux's own limit of -x and -y
)

// normal fills in the defaults and checks what can be checked without tmux.
func (sp SessionSpec) normal() (SessionSpec, error) {
	if sp.Cols == 0 {
		sp.Cols = defaultCols
	}
	if sp.Rows == 0 {
		sp.Rows = defaultRows
	}
	if err := CheckName("session", sp.Name); err != nil {
		return sp, err
	}
	if sp.Cols < 1 || sp.Cols > maxSide || sp.Rows < 1 || sp.Rows > maxSide {
		return sp, fmt.Errorf("tmux session %s: size %dx%d is not between 1x1 and %dx%d", sp.Name, sp.Cols, sp.Rows, maxSide, maxSide)
	}
	if err := checkDir(sp.Dir); err != nil {
		return sp, err
	}
	if err := checkMeta(sp.Meta); err != nil {
		return sp, err
	}
	return sp, checkEnv(sp.Env)
}

// normal is the pane with its folder filled in and its command in the form
// that tmux hands to execvp: a single word would go to a shell.
func (p PaneSpec) normal(dir string) (PaneSpec, error) {
	if p.Dir == "" {
		p.Dir = dir
	}
	switch {
	case len(p.Argv) == 0 || p.Argv[0] == "":
		return p, errors.New("tmux pane: no command given")
	case len(p.Argv) == 1 && strings.Contains(p.Argv[0], "="):
		return p, fmt.Errorf("tmux pane: cannot run %q, a single word with '=' in it", p.Argv[0])
	case len(p.Argv) == 1:
		p.Argv = []string{"env", p.Argv[0]}
	}
	if err := checkDir(p.Dir); err != nil {
		return p, err
	}
	if err := checkMeta(p.Meta); err != nil {
		return p, err
	}
	return p, checkEnv(p.Env)
}

// program is the name of what the pane runs.
func (p PaneSpec) program() string {
	argv := p.Argv
	if len(argv) == 2 && argv[0] == "env" {
		argv = argv[1:]
	}
	return filepath.Base(argv[0])
}

// checkDir makes sure of the folder: tmux silently starts somewhere else when
// it is not there.
func checkDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("tmux pane: working folder %q is not an absolute path", dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("tmux pane: looking at the working folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("tmux pane: working folder %s is not a folder", dir)
	}
	return nil
}

func isMetaKey(k string) bool {
	return ident.Word(k, ident.Lower, ident.Lower+ident.Digits+"_", 32)
}

func checkEnv(env map[string]string) error {
	for k := range env {
		if !ident.Word(k, ident.Lower+ident.Upper+"_", wordChars, len(k)) {
			return fmt.Errorf("tmux pane: environment variable %q: not a name", k)
		}
	}
	return nil
}

// checkMeta keeps keys apart from the package's own user options.
func checkMeta(meta map[string]string) error {
	for k := range meta {
		own := k == "keys" || k == "server" || k == "title" || k == "session" || strings.HasPrefix(k, "session_")
		if own || !isMetaKey(k) {
			return fmt.Errorf("tmux metadata key %q: want a-z, then a-z, 0-9 or '_', and no name of the package's own", k)
		}
	}
	return nil
}

// sorted gives a map's keys in a fixed order, so that commands are too.
func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
