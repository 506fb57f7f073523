package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muntin/checkpoint"
	"muntin/internal/durable"
	"muntin/internal/state"
	"muntin/orchestrator"
)

// The names of sources. Those of agents have the agent's name behind them.
const (
	sourceRun         = "run"
	sourceJournal     = "journal"
	sourceBoard       = "board"
	sourceAgent       = "agent/"
	sourceCheckpoints = "checkpoints/"
)

// A source is one log that a stream is made of.
type source struct {
	name string
	path string
	line func(line []byte) []Event // the parser, which may remember what it read
	at   time.Time                 // of the last event: time does not go back in a source
	read int64                     // byte offset behind the last line
	skip int64                     // up to here the events were told before
}

// take makes events of one line that ends at next. Only the last of several
// events moves a cursor behind the line: a reader that stops between them
// gets the line again.
func (s *source) take(line []byte, next int64) []Event {
	start := s.read
	s.read = next
	events := s.line(line)
	if next <= s.skip {
		return nil
	}
	for i := range events {
		s.order(&events[i])
		events[i].next = start
	}
	if len(events) > 0 {
		events[len(events)-1].next = next
	}
	return events
}

func (s *source) order(e *Event) {
	if s.at.Before(e.Time) {
		s.at = e.Time
	}
	e.Source, e.at = s.name, s.at
}

// A reader reads the sources of one run.
type reader struct {
	run    orchestrator.Run
	from   Cursor
	agents []string
	logs   []*source
	chains map[string]*source // of checkpoints, by the path of their ref
}

func open(run orchestrator.Run, from Cursor) (*reader, error) {
	agents, err := run.AgentNames()
	if err != nil {
		return nil, fmt.Errorf("reading the history of run %s: %w", run.Name, err)
	}
	r := &reader{run: run, from: from, agents: withFolders(agents, run.Dir), chains: map[string]*source{}}
	add := func(name, path string, line func([]byte) []Event) {
		r.logs = append(r.logs, &source{name: name, path: path, line: line, skip: from[name]})
	}
	add(sourceJournal, run.Dir.Journal(), newJournal().line)
	for _, name := range r.agents {
		add(sourceAgent+name, run.Dir.Agent(name).Events(), agentLog(name))
	}
	add(sourceBoard, run.Dir.Repo().BoardLog(run.Todo), boardLog(run.Created, r.ended()))
	for _, name := range r.agents {
		ref := orchestrator.CheckpointRef(run.Name, name)
		r.chains[ref] = &source{name: sourceCheckpoints + name, path: name, skip: from[sourceCheckpoints+name]}
	}
	return r, nil
}

// withFolders adds agents that have a folder and are in the recipe no more.
func withFolders(agents []string, dir state.RunDir) []string {
	entries, _ := os.ReadDir(dir.Agents())
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(agents, e.Name()) {
			agents = append(agents, e.Name())
		}
	}
	return agents
}

// ended is when the last log of an ended run was written; zero for a living
// one. What is done on the board later is not of this run.
func (r *reader) ended() time.Time {
	if r.run.Alive() {
		return time.Time{}
	}
	var last time.Time
	paths := []string{r.run.Dir.Journal()}
	for _, name := range r.agents {
		paths = append(paths, r.run.Dir.Agent(name).Events())
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// Load reads what has happened in a run by now, from the cursor on.
func Load(ctx context.Context, run orchestrator.Run, from Cursor) ([]Event, error) {
	r, err := open(run, from)
	if err != nil {
		return nil, err
	}
	return r.past(ctx)
}

// past reads all logs to their present ends.
func (r *reader) past(ctx context.Context) ([]Event, error) {
	var all []Event
	if r.from[sourceRun] == 0 {
		all = append(all, Event{
			Time: r.run.Created, at: r.run.Created, next: 1, Source: sourceRun, Seq: 1, Kind: KindRun, What: "started",
			Who: Person, Text: r.run.From + " in " + r.run.Root,
		})
	}
	for _, s := range r.logs {
		_, err := durable.Lines(s.path, 0, func(line []byte, next int64) error {
			all = append(all, s.take(line, next)...)
			return ctx.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("reading the history of run %s: %w", r.run.Name, err)
		}
	}
	for ref := range r.chains {
		events, err := r.chain(ctx, ref)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	sortEvents(all)
	return all, nil
}

// chain reads what is new on a chain of checkpoints. A repository that has gone
// has none.
func (r *reader) chain(ctx context.Context, ref string) ([]Event, error) {
	s := r.chains[ref]
	list, err := checkpoint.ReadChain(ctx, r.place(), ref)
	if errors.Is(err, state.ErrNoRepo) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of run %s: %w", r.run.Name, err)
	}
	var out []Event
	for _, e := range byHand(s.path, list) {
		if e.next > max(s.skip, s.read) {
			s.order(&e)
			out = append(out, e)
		}
	}
	if len(list) > 0 {
		s.read = max(s.read, int64(list[0].ID))
	}
	return out, nil
}

// place is a folder of the repository: where the run was started, or the main
// worktree where that has gone.
func (r *reader) place() string {
	if _, err := os.Stat(r.run.Root); err != nil {
		return r.run.Repo
	}
	return r.run.Root
}

// refFiles are the files of the chains' refs, by path; empty where they cannot
// be watched.
func (r *reader) refFiles() map[string]string {
	repo, err := state.FindRepo(r.place())
	if err != nil {
		return nil
	}
	paths := map[string]string{}
	for ref := range r.chains {
		paths[filepath.Join(repo.CommonDir, filepath.FromSlash(ref))] = ref
	}
	return paths
}

// sortEvents sorts by time; at the same time by source, and in one source by
// its own order.
func sortEvents(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.Source, b.Source)
	})
}
