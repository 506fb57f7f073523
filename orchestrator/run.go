package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/recipes"
)

// Info is what is fixed about a run when it is started: run.json in its folder.
type Info struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	From    string    `json:"recipe"` // the recipe's name
	Repo    string    `json:"repo"`   // top of the main worktree
	Root    string    `json:"root"`   // top of the worktree it was started from; the board is here
	Key     string    `json:"key"`    // of the repository
	Base    string    `json:"base"`   // the commit it began at
	Branch  string    `json:"branch,omitempty"`
	Plan    string    `json:"plan"` // absolute paths
	Todo    string    `json:"todo"`
	Created time.Time `json:"created"`
	Socket  string    `json:"tmux_socket"`
	Session string    `json:"tmux_session"`
	Program string    `json:"program"` // muntin's version
	// Missing is what the recipe wants in the worktrees and there was none of.
	Missing []string `json:"missing,omitempty"`
	Origin  Origin   `json:"origin"`
}

// An Origin is where a run's recipe came from, so that it can be read again.
type Origin struct {
	Recipe string   `json:"recipe,omitempty"` // a name, or the absolute path of a file; empty: no file
	Set    []string `json:"set,omitempty"`    // values of its parameters, as name=value
	Model  string   `json:"model,omitempty"`  // for agents that name none
}

// infoVersion is the version of the format of run.json.
const infoVersion = 1

// ErrNoRun says that there is no run of that name.
var ErrNoRun = errors.New("no such run")

func infoPath(d state.RunDir) string { return filepath.Join(d.Path, "run.json") }

// ReadInfo reads a run's run.json. The error matches ErrNoRun if there is none.
func ReadInfo(d state.RunDir) (Info, error) {
	var info Info
	b, err := os.ReadFile(infoPath(d))
	if errors.Is(err, os.ErrNotExist) {
		return info, fmt.Errorf("%w: %s", ErrNoRun, d.Name)
	}
	if err != nil {
		return info, fmt.Errorf("reading run %s: %w", d.Name, err)
	}
	if err := json.Unmarshal(b, &info); err != nil {
		return info, fmt.Errorf("reading run %s: %s: %w", d.Name, infoPath(d), err)
	}
	if info.Version != infoVersion {
		return info, fmt.Errorf("reading run %s: its format is version %d, this program knows %d", d.Name, info.Version, infoVersion)
	}
	return info, nil
}

func writeInfo(d state.RunDir, info Info) error {
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("writing run %s: %w", d.Name, err)
	}
	return durable.WriteFile(infoPath(d), append(b, '\n'), 0o600)
}

// A Run is a run that was found, with its folder.
type Run struct {
	Info
	Dir state.RunDir
}

// Runs lists the runs of one repository, newest first. Folders that are no
// runs are passed over; one that cannot be read is an error beside the others.
func Runs(dir state.RepoDir) ([]Run, error) {
	entries, err := os.ReadDir(dir.Runs())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var runs []Run
	var problems []error
	for _, e := range entries {
		d := dir.Run(e.Name())
		info, err := ReadInfo(d)
		switch {
		case errors.Is(err, ErrNoRun):
		case err != nil:
			problems = append(problems, err)
		default:
			runs = append(runs, Run{Info: info, Dir: d})
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return b.Created.Compare(a.Created) })
	return runs, errors.Join(problems...)
}

// AllRuns lists the runs of every repository, newest first.
func AllRuns(l state.Layout) ([]Run, error) {
	repos, err := os.ReadDir(l.State)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var all []Run
	var problems []error
	for _, r := range repos {
		runs, err := Runs(l.RepoAt(filepath.Join(l.State, r.Name())))
		all = append(all, runs...)
		problems = append(problems, err)
	}
	slices.SortFunc(all, func(a, b Run) int { return b.Created.Compare(a.Created) })
	return all, errors.Join(problems...)
}

// Alive reports whether a process of the run is there: its orchestrator holds
// its lock, or a supervisor answers on its socket.
func (r Run) Alive() bool {
	if r.Served() {
		return true
	}
	names, err := r.AgentNames()
	if err != nil {
		return false
	}
	for _, name := range names {
		conn, err := net.Dial("unix", r.Dir.Agent(name).Socket)
		if err == nil {
			conn.Close()
			return true
		}
	}
	return false
}

// Served reports whether the run's orchestrator is at work.
func (r Run) Served() bool { return durable.Locked(r.Dir.Lock()) }

// Recipe is the resolved recipe that the run was started with.
func (r Run) Recipe() (*recipes.Recipe, error) { return recipes.Load(r.Dir.Manifest()) }

// AgentNames lists the agents of the run in the recipe's order.
func (r Run) AgentNames() ([]string, error) {
	recipe, err := r.Recipe()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range recipe.Agents {
		names = append(names, a.Name)
	}
	return names, nil
}
