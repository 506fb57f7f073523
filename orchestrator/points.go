package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/agent/pty"
	"muntin/checkpoint"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/orchestrator/board"
	"muntin/orchestrator/worktree"
	"muntin/recipes"
)

// A PointCause says why a fleet point was taken.
type PointCause string

// The causes.
const (
	PointManual   PointCause = "manual"   // somebody asked for it
	PointMerge    PointCause = "merge"    // a task has landed
	PointRollback PointCause = "rollback" // the present before a rollback
	PointRestored PointCause = "restored" // the present after one
)

// A Point is a fleet point: one state of a whole run that can be gone back to. It is
// a line of points.jsonl in the run's folder, and a commit on the run's ref of points,
// which keeps all that it names.
type Point struct {
	ID     int          `json:"id"`
	Time   time.Time    `json:"time"`
	Cause  PointCause   `json:"cause"`
	Note   string       `json:"note,omitempty"`
	Task   string       `json:"task,omitempty"`   // merge: what landed
	Key    string       `json:"key,omitempty"`    // merge: the effect's id, so that it is taken once
	Target int          `json:"target,omitempty"` // rollback, restored: the point that was gone back to
	Undoes []string     `json:"undoes,omitempty"` // rollback: the agents that went back; none: all
	Commit string       `json:"commit"`           // where the integration branch stood
	Kept   string       `json:"kept"`             // the commit that keeps it; it also has TODO.md and PLAN.md
	Agents []PointAgent `json:"agents"`
	Tasks  []PointTask  `json:"tasks"`
}

// A PointAgent is where one agent was.
type PointAgent struct {
	Name       string `json:"name"`
	Checkpoint int    `json:"checkpoint,omitempty"` // its number on the agent's chain; 0: none was taken yet
	Commit     string `json:"commit,omitempty"`     // of the checkpoint
	Tree       string `json:"tree,omitempty"`
	Turn       int    `json:"turn"`
	Entry      string `json:"entry,omitempty"` // in its conversation
	Branch     string `json:"branch,omitempty"`
}

// A PointTask is what the board said of a task.
type PointTask struct {
	ID    string      `json:"id"`
	State board.State `json:"state"`
	Claim string      `json:"claim,omitempty"`
	Names []string    `json:"names,omitempty"` // all of the task's @names
}

// Agent returns the part of an agent.
func (p Point) Agent(name string) (PointAgent, bool) {
	i := slices.IndexFunc(p.Agents, func(a PointAgent) bool { return a.Name == name })
	if i < 0 {
		return PointAgent{}, false
	}
	return p.Agents[i], true
}

func pointsPath(d state.RunDir) string { return filepath.Join(d.Path, "points.jsonl") }

// pointsRef keeps what the points of a run name.
func pointsRef(run string) string { return checkpoint.PointRefs + run }

// ErrNoPoint says that a run has no fleet point of that number.
var ErrNoPoint = errors.New("no such fleet point")

// Points lists the fleet points of a run, the oldest first.
func Points(d state.RunDir) ([]Point, error) {
	var all []Point
	_, err := durable.Lines(pointsPath(d), 0, func(line []byte, _ int64) error {
		var p Point
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		all = append(all, p)
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fleet points of run %s: %w", d.Name, err)
	}
	return all, nil
}

// lastPoints are the points at the end of the file: what another one needs to know of,
// however many there are.
func lastPoints(d state.RunDir) ([]Point, error) {
	info, err := os.Stat(pointsPath(d))
	if err != nil || info.Size() <= lastBytes {
		return Points(d)
	}
	var all []Point
	cut := true
	_, err = durable.Lines(pointsPath(d), info.Size()-lastBytes, func(line []byte, _ int64) error {
		var p Point
		err := json.Unmarshal(line, &p)
		if cut { // the first one began before
			cut = false
			return nil
		}
		all = append(all, p)
		return err
	})
	if err != nil || len(all) < 2 {
		return Points(d) // lines that long are rare
	}
	return all, nil
}

const lastBytes = 256 << 10

// FindPoint returns the point of a number. The error matches ErrNoPoint.
func FindPoint(d state.RunDir, id int) (Point, error) {
	all, err := Points(d)
	if err != nil {
		return Point{}, err
	}
	i := slices.IndexFunc(all, func(p Point) bool { return p.ID == id })
	if i < 0 {
		return Point{}, fmt.Errorf("%w: %d of run %s", ErrNoPoint, id, d.Name)
	}
	return all[i], nil
}

// A PointTaker takes fleet points of a run.
type PointTaker struct {
	Run    Run
	Git    *worktree.Manager
	Recipe *recipes.Recipe
	Now    func() time.Time
}

// Take takes a point of what is there: each agent's latest checkpoint, the board and
// where the branches stand. p gives its cause, and what belongs to that. A point whose Key
// there is already is not taken again.
func (t PointTaker) Take(ctx context.Context, p Point) (_ Point, err error) {
	lock, err := durable.Lock(ctx, pointsPath(t.Run.Dir)+".lock")
	if err != nil {
		return p, fmt.Errorf("taking a fleet point: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := lastPoints(t.Run.Dir)
	if err != nil {
		return p, err
	}
	for _, old := range slices.Backward(all) {
		if p.Key != "" && old.Key == p.Key {
			return old, nil
		}
	}
	p.ID, p.Time = 1, t.Now().UTC()
	if len(all) > 0 {
		p.ID = all[len(all)-1].ID + 1
	}
	keep := worktree.Keep{Ref: pointsRef(t.Run.Name), Files: map[string]string{}}
	if err := t.look(ctx, &p, &keep); err != nil {
		return p, fmt.Errorf("taking a fleet point: %w", err)
	}
	if p.Kept, err = t.Git.Keep(ctx, keep); err != nil {
		return p, err
	}
	log, err := durable.OpenLog(pointsPath(t.Run.Dir))
	if err != nil {
		return p, fmt.Errorf("taking a fleet point: %w", err)
	}
	if err = log.Append(p); err == nil {
		err = log.Sync()
	}
	return p, errors.Join(err, log.Close())
}

// look fills in what a point holds.
func (t PointTaker) look(ctx context.Context, p *Point, keep *worktree.Keep) error {
	branches, _, err := t.Git.Tips(ctx, t.Run.Name, checkpointRefs(t.Run.Name))
	if err != nil {
		return err
	}
	p.Commit = branches[filepath.Base(t.Run.Branch)]
	keep.Commits = append(keep.Commits, p.Commit)
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	var message strings.Builder
	fmt.Fprintf(&message, "fleet point %d: %s\n\nMuntin-Run: %s\n", p.ID, p.Cause, t.Run.Name)
	for _, a := range t.Recipe.Agents {
		part := PointAgent{Name: a.Name}
		if a.Isolation != recipes.IsolationNone {
			part.Branch = branches[filepath.Base(WorkDir(t.Run.Dir, t.Run.Root, a))]
			keep.Commits = append(keep.Commits, part.Branch)
		}
		if c, ok := newest[a.Name]; ok {
			part.Checkpoint, part.Commit, part.Tree, part.Turn, part.Entry = c.ID, c.Commit, c.Tree, c.Turn, c.Entry
			if t.Git.Has(ctx, c.Commit) { // else they are kept outside the repository
				keep.Commits = append(keep.Commits, c.Commit)
			}
			fmt.Fprintf(&message, "%s: %d %s\n", checkpoint.PinTrailer, c.ID, c.Ref)
		}
		p.Agents = append(p.Agents, part)
	}
	keep.Message = message.String()
	return t.lookAtBoard(p, keep)
}

// newest are the agents' latest checkpoints.
func (t PointTaker) newest(ctx context.Context) (map[string]checkpoint.Checkpoint, error) {
	chains, err := checkpoint.Chains(ctx, t.Run.Root, checkpointRefs(t.Run.Name)+"/")
	if err != nil {
		return nil, err
	}
	all := map[string]checkpoint.Checkpoint{}
	for _, c := range chains {
		all[filepath.Base(c.Ref)] = c.Newest
	}
	return all, nil
}

func (t PointTaker) lookAtBoard(p *Point, keep *worktree.Keep) error {
	p.Tasks = []PointTask{}
	for name, path := range map[string]string{"TODO.md": t.Run.Todo, "PLAN.md": t.Run.Plan} {
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		keep.Files[name] = string(text)
	}
	brd, err := board.Parse([]byte(keep.Files["TODO.md"]))
	if err != nil {
		return fmt.Errorf("reading the board: %w", err)
	}
	for _, task := range brd.Tasks() {
		if task.ID == "" || task.State == board.Unknown {
			continue
		}
		p.Tasks = append(p.Tasks, PointTask{ID: task.ID, State: task.State, Claim: task.Claim, Names: task.Assignees})
	}
	return nil
}

// SaveChanged takes a checkpoint of each agent at rest whose files have changed since
// its last one. Agents in a turn stand at the end of the one before: in the middle
// of one there is no state to go back to.
func (t PointTaker) SaveChanged(ctx context.Context) error {
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	for _, a := range t.Recipe.Agents {
		last, ok := newest[a.Name]
		if !ok || works(ctx, t.Run.Dir.Agent(a.Name).Socket) {
			continue
		}
		store, err := checkpoint.Open(ctx, checkpoint.Options{
			Worktree: WorkDir(t.Run.Dir, t.Run.Root, a), Ref: CheckpointRef(t.Run.Name, a.Name),
			CacheDir: t.Run.Dir.Agent(a.Name).Path, Now: t.Now,
		})
		if err != nil {
			return fmt.Errorf("taking a checkpoint of %s: %w", a.Name, err)
		}
		_, err = saveChanges(ctx, store, last.Tree, checkpoint.Meta{
			Run: t.Run.Name, Agent: a.Name, Turn: last.Turn, Entry: last.Entry, Cause: checkpoint.CauseManual, Note: "for a point of the run",
		})
		if err = errors.Join(err, store.Close()); err != nil {
			return fmt.Errorf("taking a checkpoint of %s: %w", a.Name, err)
		}
	}
	return nil
}

// works tells whether an agent is in a turn.
func works(ctx context.Context, socket string) bool {
	client, err := pty.Dial(ctx, socket)
	if err != nil {
		return false
	}
	defer client.Close()
	status, err := client.Status(ctx)
	return err == nil && status.State == pty.AgentWorking
}
