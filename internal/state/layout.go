package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// MaxSocketPath is the longest socket path, in bytes, that every supported
// system takes (macOS: 104 with the final NUL).
const MaxSocketPath = 103

// A Layout holds the base folders of one user.
type Layout struct {
	State   string // $XDG_STATE_HOME/muntin: kept
	Runtime string // $XDG_RUNTIME_DIR/muntin: sockets, gone after a restart of the machine
	Config  string // $XDG_CONFIG_HOME/muntin: settings and keys; "" when neither that nor HOME is an absolute path
}

// NewLayout reads the base folders from the environment (getenv is
// os.Getenv), as the XDG base directory specification has them:
// https://specifications.freedesktop.org/basedir-spec/latest/.
func NewLayout(getenv func(string) string) (Layout, error) {
	stateHome := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(stateHome) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return Layout{}, fmt.Errorf("finding the state folder: neither XDG_STATE_HOME nor HOME is an absolute path")
		}
		stateHome = filepath.Join(home, ".local", "state")
	}
	config := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = ""
		if home := getenv("HOME"); filepath.IsAbs(home) {
			config = filepath.Join(home, ".config")
		}
	}
	if config != "" {
		config = filepath.Join(config, "muntin")
	}
	runtime := getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(runtime) {
		runtime = filepath.Join(runtime, "muntin")
	} else {
		runtime = filepath.Join(os.TempDir(), fmt.Sprintf("muntin-%d", os.Getuid()))
	}
	return Layout{State: filepath.Join(stateHome, "muntin"), Runtime: runtime, Config: config}, nil
}

// Repo is the state folder of one repository.
func (l Layout) Repo(r Repo) RepoDir {
	return RepoDir{layout: l, Path: filepath.Join(l.State, r.Name()+"-"+r.Key())}
}

// Models is the user's own models, in Pi's format.
func (l Layout) Models() string { return filepath.Join(l.Config, "models.json") }

// Ports is the leases of ports of all runs.
func (l Layout) Ports() string { return filepath.Join(l.State, "ports.json") }

// Credentials is the stored keys of model providers, mode 0600.
func (l Layout) Credentials() string { return filepath.Join(l.Config, "auth.json") }

// Trust is the decisions on which folders the user trusts, mode 0600.
func (l Layout) Trust() string { return filepath.Join(l.State, "trust.json") }

// RepoAt is the state folder of a repository when the folder's own path is
// known, as from a listing.
func (l Layout) RepoAt(path string) RepoDir { return RepoDir{layout: l, Path: path} }

// A RepoDir is where the runs of one repository keep their state.
type RepoDir struct {
	layout Layout
	Path   string
}

// Runs is the folder with one folder a run.
func (d RepoDir) Runs() string { return filepath.Join(d.Path, "runs") }

// Checkpoints is the bare repository for the checkpoints of a repository that
// cannot hold them, or of a folder without one.
func (d RepoDir) Checkpoints() string { return filepath.Join(d.Path, "checkpoints.git") }

// Trash is where removed worktrees' leftovers go.
func (d RepoDir) Trash() string { return filepath.Join(d.Path, "trash") }

// BoardLock is the lock that all writers of the board file at path share. The
// repository's folder must exist before it can be taken.
func (d RepoDir) BoardLock(path string) string { return d.board(path) + ".lock" }

// BoardVersions is the folder with the last texts of the board file at path.
func (d RepoDir) BoardVersions(path string) string { return d.board(path) }

// BoardLog is the log of what changed on the board file at path.
func (d RepoDir) BoardLog(path string) string { return d.board(path) + ".jsonl" }

func (d RepoDir) board(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(d.Path, "board-"+hex.EncodeToString(sum[:4]))
}

// Worktrees is the folder that holds the linked worktrees of a run, or of all
// runs when run is empty.
func (d RepoDir) Worktrees(run string) string { return filepath.Join(d.Path, "worktrees", run) }

// Run is the folder of one run.
func (d RepoDir) Run(run string) RunDir {
	sum := sha256.Sum256([]byte(filepath.Join(d.Path, run)))
	return RunDir{
		Name:    run,
		Path:    filepath.Join(d.Runs(), run),
		sockets: filepath.Join(d.layout.Runtime, hex.EncodeToString(sum[:6])),
		repo:    d,
	}
}

// A RunDir is where one run keeps its state.
type RunDir struct {
	Name    string
	Path    string
	sockets string
	repo    RepoDir
}

// Repo is the folder of the repository whose run it is.
func (d RunDir) Repo() RepoDir { return d.repo }

// Manifest is the resolved recipe that was started.
func (d RunDir) Manifest() string { return filepath.Join(d.Path, "run.yaml") }

// Journal is the orchestrator's decisions.
func (d RunDir) Journal() string { return filepath.Join(d.Path, "journal.jsonl") }

// Lock is held by the run's orchestrator.
func (d RunDir) Lock() string { return filepath.Join(d.Path, "orchestrator.lock") }

// Log is the structured log of one of the run's processes.
func (d RunDir) Log(name string) string { return filepath.Join(d.Path, "logs", name+".log") }

// Ports is the leases of ports of all runs, not of this one alone.
func (d RunDir) Ports() string { return d.repo.layout.Ports() }

// Agents is the folder with one folder an agent.
func (d RunDir) Agents() string { return filepath.Join(d.Path, "agents") }

// Sockets is the folder of the run's agents' sockets; it must be 0700.
func (d RunDir) Sockets() string { return d.sockets }

// Agent is the folder of one agent of the run.
func (d RunDir) Agent(agent string) AgentDir {
	return AgentDir{
		Name:     agent,
		Path:     filepath.Join(d.Agents(), agent),
		Socket:   filepath.Join(d.sockets, agent+".sock"),
		Worktree: filepath.Join(d.repo.Worktrees(d.Name), agent),
	}
}

// An AgentDir is where one agent of a run keeps its state.
type AgentDir struct {
	Name     string
	Path     string
	Socket   string // the supervisor's unix socket
	Worktree string // the agent's linked worktree, if it has one
}

// Events is the supervisor's log.
func (d AgentDir) Events() string { return filepath.Join(d.Path, "events.jsonl") }

// Inbox is the folder of messages that wait; Done of those that are through.
func (d AgentDir) Inbox() string { return filepath.Join(d.Path, "inbox") }

// Done is the folder of messages that reached an end.
func (d AgentDir) Done() string { return filepath.Join(d.Path, "done") }

// Session is the built-in agent's conversation tree.
func (d AgentDir) Session() string { return filepath.Join(d.Path, "session.jsonl") }

// Screen is the recording of the pane, an asciicast.
func (d AgentDir) Screen() string { return filepath.Join(d.Path, "screen.cast") }

// Blobs is the folder of images and long outputs, by hash.
func (d AgentDir) Blobs() string { return filepath.Join(d.Path, "blobs") }
