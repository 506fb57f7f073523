package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muntin/checkpoint"
	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// ErrRunExists says that the name of a run is taken.
var ErrRunExists = errors.New("a run of that name exists")

// A Pane is a place on the screen with a program of its own in it.
type Pane struct {
	Name string
	Argv []string
	Dir  string
}

// A Fleet is what a Host puts on the screen for a run.
type Fleet struct {
	Session string
	Label   string // for people
	Board   Pane
	Agents  []Pane
	Layout  recipes.Layout
	Env     map[string]string // what the panes' programs find their run by; no secrets
	Cols    int
	Rows    int
}

// A Host is where panes live.
type Host interface {
	// Start brings up the panes of a fleet, each with its program as its own
	// process. When it fails, nothing of the fleet is left.
	Start(ctx context.Context, f Fleet) error
	// Restore runs the programs of the named panes of a fleet, which do not run:
	// in their panes if they are there, else in new ones, in a new session if
	// that is gone too. Everything else is left as it is.
	Restore(ctx context.Context, f Fleet, names []string) error
	// Panes tells of each pane of a session by its name whether its program
	// runs. It is empty when the session is not there.
	Panes(ctx context.Context, session string) (map[string]bool, error)
	// Stop ends the panes of a session and the session. A session that is not
	// there is no error.
	Stop(ctx context.Context, session string) error
}

// UpOptions say what to bring up and where.
type UpOptions struct {
	Repo    state.Repo
	Dir     state.RepoDir
	Recipe  *recipes.Recipe
	Origin  Origin // of Recipe
	Name    string
	Host    Host
	Socket  string   // of the tmux server, for the record
	Self    string   // the muntin program
	Program string   // its version
	Environ []string // what agents and checks get
	Cols    int
	Rows    int
	Now     func() time.Time
}

// Up starts a run: worktrees, then panes. It returns when all supervisors were
// started, not when the agents are ready: see WaitReady. When it fails or ctx
// ends, everything it made is taken away again. The error matches ErrRunExists
// when the name is taken.
func Up(ctx context.Context, o UpOptions) (run Run, err error) {
	u, err := newBringUp(ctx, o)
	if err != nil {
		return Run{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.undo(context.WithoutCancel(ctx)))
		}
	}()
	for _, step := range []func(context.Context) error{u.folder, u.worktrees, u.records, u.prompts, u.panes} {
		if err := context.Cause(ctx); err != nil {
			return Run{}, err
		}
		if err := step(ctx); err != nil {
			return Run{}, err
		}
	}
	return Run{Info: u.info, Dir: u.dir}, nil
}

// A bringUp is an Up under way.
type bringUp struct {
	UpOptions
	dir    state.RunDir
	info   Info
	agents []recipes.Agent
	git    *worktree.Manager
	made   made
	mu     sync.Mutex // guards info.Missing while worktrees are made
	undos  []func(context.Context) error
}

func newBringUp(ctx context.Context, o UpOptions) (*bringUp, error) {
	if err := id.CheckName("run", o.Name); err != nil {
		return nil, err
	}
	if err := CheckMode(o.Recipe); err != nil {
		return nil, err
	}
	o.Recipe = o.Recipe.Bind(recipes.Vars{Repo: o.Repo.Root, Run: o.Name})
	u := &bringUp{UpOptions: o, dir: o.Dir.Run(o.Name), agents: o.Recipe.Resolve()}
	if err := checkPlaces(o.Name, u.dir, u.agents); err != nil {
		return nil, err
	}
	if err := checkAgents(u.agents, o.Environ); err != nil {
		return nil, err
	}
	git, err := OpenGit(ctx, o.Repo, o.Dir, o.Now)
	if err != nil {
		return nil, err
	}
	u.git = git
	base, unborn, err := git.Head(ctx)
	if err != nil {
		return nil, err
	}
	if unborn {
		return nil, fmt.Errorf("%w: agents' worktrees start from one; make it with `git commit`", worktree.ErrUnborn)
	}
	u.info = Info{
		Version: infoVersion, Name: o.Name, From: o.Recipe.Name, Repo: o.Repo.Main, Root: o.Repo.Root, Key: o.Repo.Key(),
		Base: base, Branch: worktree.Integration(o.Name),
		Plan: filepath.Join(o.Repo.Root, o.Recipe.Board.Plan), Todo: filepath.Join(o.Repo.Root, o.Recipe.Board.Todo),
		Created: o.Now(), Socket: o.Socket, Session: SessionName(o.Repo, o.Name), Program: o.Program, Origin: o.Origin,
	}
	return u, nil
}

// checkPlaces makes sure that agents can have what is named after them.
func checkPlaces(run string, dir state.RunDir, agents []recipes.Agent) error {
	for _, a := range agents {
		if a.Name == BoardPane {
			return fmt.Errorf("an agent cannot be named %s: the orchestrator's pane is", a.Name)
		}
		if err := worktree.CheckNames(run, a.Name); err != nil {
			return err
		}
		if s := dir.Agent(a.Name).Socket; len(s) > state.MaxSocketPath {
			return fmt.Errorf("the socket of agent %s would have a path of %d bytes, more than the %d that systems take: set XDG_RUNTIME_DIR to a shorter folder (%s)",
				a.Name, len(s), state.MaxSocketPath, s)
		}
	}
	return nil
}

// OpenGit opens the git side of a repository's runs.
func OpenGit(ctx context.Context, repo state.Repo, dir state.RepoDir, now func() time.Time) (*worktree.Manager, error) {
	return worktree.Open(ctx, worktree.Options{
		Repo: repo, Root: dir.Worktrees(""), Trash: dir.Trash(), Now: now,
		Rescue: func(ctx context.Context, path string) (string, error) {
			return rescue(ctx, path, now)
		},
	})
}

// rescue makes a commit of all files of a worktree that is to be removed.
func rescue(ctx context.Context, path string, now func() time.Time) (string, error) {
	store, err := checkpoint.Open(ctx, checkpoint.Options{Worktree: path, Ref: "refs/muntin/rescue/" + strings.ToLower(id.New(now())), Now: now})
	if err != nil {
		return "", err
	}
	saved, _, err := store.Save(ctx, checkpoint.Meta{Cause: checkpoint.CauseManual, Note: "before the worktree was removed"})
	return saved.Commit, err
}

// SessionName is the name of a run's tmux session: the repository's name made
// safe, its key and the run.
func SessionName(repo state.Repo, run string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, repo.Name())
	name = "muntin-" + name
	if limit := 40 - len(run) - 6; len(name) > limit {
		name = name[:max(limit, 0)]
	}
	return strings.TrimLeft(name+"-"+repo.Key()[:4]+"-"+run, "-")
}

// checkAgents makes sure that the commands and the variables that agents need
// are there, before anything is made.
func checkAgents(agents []recipes.Agent, environ []string) error {
	for _, a := range agents {
		for _, name := range a.Env {
			if !slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
				return fmt.Errorf("agent %s wants the environment variable %s, which is not set", a.Name, name)
			}
		}
		argv := Program(a)
		if a.BuiltIn() || strings.Contains(argv[0], "/") {
			continue // a path may be one in the worktree
		}
		if _, err := exec.LookPath(argv[0]); err != nil {
			return fmt.Errorf("agent %s: the command %s is not installed: %w", a.Name, argv[0], err)
		}
	}
	return nil
}

// undo takes away what was made, last first.
func (u *bringUp) undo(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(u.undos) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// folder makes the run's folder, whose name nobody else can have then.
func (u *bringUp) folder(context.Context) error {
	if err := os.MkdirAll(u.Dir.Runs(), 0o700); err != nil {
		return fmt.Errorf("making the run's folder: %w", err)
	}
	err := os.Mkdir(u.dir.Path, 0o700)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %s", ErrRunExists, u.Name)
	}
	if err != nil {
		return fmt.Errorf("making the run's folder: %w", err)
	}
	u.undos = append(u.undos, func(context.Context) error { return os.RemoveAll(u.dir.Path) })
	if err := durable.PrivateDir(u.dir.Sockets()); err != nil {
		return fmt.Errorf("making the run's socket folder: %w", err)
	}
	u.undos = append(u.undos, func(context.Context) error { return os.RemoveAll(u.dir.Sockets()) })
	for _, a := range u.agents {
		if err := os.MkdirAll(u.dir.Agent(a.Name).Path, 0o700); err != nil {
			return fmt.Errorf("making the folder of agent %s: %w", a.Name, err)
		}
	}
	return nil
}

// records writes down what the run is and what its processes need.
func (u *bringUp) records(context.Context) error {
	manifest, err := u.Recipe.Resolved().Marshal()
	if err != nil {
		return fmt.Errorf("writing the run's recipe: %w", err)
	}
	return errors.Join(
		durable.WriteFile(u.dir.Manifest(), manifest, 0o600),
		writeEnv(u.dir, u.Environ),
		writeInfo(u.dir, u.info),
	)
}

// prompts puts the recipe's first prompts into the inboxes.
func (u *bringUp) prompts(context.Context) error {
	for _, a := range u.agents {
		if err := firstPrompt(u.dir.Agent(a.Name), a, u.Repo.Root, u.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (u *bringUp) panes(ctx context.Context) error {
	fleet := NewFleet(Run{Info: u.info, Dir: u.dir}, u.Recipe, FleetOptions{Self: u.Self, Environ: u.Environ, Cols: u.Cols, Rows: u.Rows})
	u.made.fresh = false // agents work from here on
	u.undos = append(u.undos, func(ctx context.Context) error { return u.Host.Stop(ctx, u.info.Session) })
	return u.Host.Start(ctx, fleet)
}

// placeEnv picks the variables that say where muntin's folders are. The host's
// own environment may be that of another day and another shell.
func placeEnv(environ []string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME", "PATH", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "MUNTIN_TMUX_SOCKET":
			env[name] = value
		}
	}
	return env
}

// WorkDir is the folder an agent works in.
func WorkDir(run state.RunDir, root string, a recipes.Agent) string {
	switch a.Isolation {
	case recipes.IsolationNone:
		return root
	case recipes.IsolationShared:
		return run.Agent("shared").Worktree
	case recipes.IsolationWorktree:
	}
	return run.Agent(a.Name).Worktree
}

// CheckpointRef is the ref of an agent's chain of checkpoints. It must not be
// refs/muntin/<run>/<agent>: git would take the branch muntin/<run>/<agent>,
// named in short, for the checkpoints.
func CheckpointRef(run, agent string) string { return checkpointRefs(run) + "/" + agent }

func checkpointRefs(run string) string { return "refs/muntin/checkpoints/" + run }

// envPath is where the environment of a run's processes is kept while the
// machine is up: in the folder of the sockets, which only its owner can enter.
// It may hold keys, so it is in no log and not in the state folder.
func envPath(d state.RunDir) string { return filepath.Join(d.Sockets(), "env.json") }

func writeEnv(d state.RunDir, environ []string) error {
	env, err := json.Marshal(environ)
	if err != nil {
		return fmt.Errorf("writing the run's environment: %w", err)
	}
	return durable.WriteFile(envPath(d), env, 0o600)
}

// ReadEnv returns the environment that the run was started in, or fallback
// when it is gone, as after a restart of the machine.
func ReadEnv(d state.RunDir, fallback []string) ([]string, error) {
	b, err := os.ReadFile(envPath(d))
	if errors.Is(err, os.ErrNotExist) {
		return fallback, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the run's environment: %w", err)
	}
	var env []string
	if err := json.Unmarshal(b, &env); err != nil {
		return nil, fmt.Errorf("reading the run's environment %s: %w", envPath(d), err)
	}
	return env, nil
}
