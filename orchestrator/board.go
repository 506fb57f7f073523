package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"muntin/orchestrator/board"
)

// A BoardReader reads and edits the run's board and numbers every reading, so
// that the reducer never takes an older one for a newer.
type BoardReader struct {
	file board.File

	mu   sync.Mutex // held over reading and numbering
	rev  int64
	done map[string]string // by whom tasks were ticked, as far as looked up
}

// NewBoardReader makes a reader whose readings count on from rev.
func NewBoardReader(file board.File, rev int64) *BoardReader {
	return &BoardReader{file: file, rev: rev, done: map[string]string{}}
}

// Read gives tasks without one an id, brings in what a save from an old text would
// have wiped out, and returns the board as an input. A missing file is a board
// without tasks.
func (b *BoardReader) Read(ctx context.Context) (Input, []board.Problem, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	brd, _, err := b.file.Update(ctx, func(brd *board.Board) error {
		_, err := brd.EnsureIDs()
		return err
	})
	if errors.Is(err, board.ErrNoFile) {
		b.rev++
		return Input{Kind: InputBoard, Rev: b.rev, Tasks: []Task{}}, nil, nil
	}
	if err != nil {
		return Input{}, nil, fmt.Errorf("reading the board: %w", err)
	}
	tasks, err := b.tasks(brd)
	if err != nil {
		return Input{}, nil, fmt.Errorf("reading the board: %w", err)
	}
	b.rev++
	return Input{Kind: InputBoard, Rev: b.rev, Tasks: tasks}, brd.Problems, nil
}

// tasks is the board with who ticked what, which the board's log knows.
func (b *BoardReader) tasks(brd *board.Board) ([]Task, error) {
	list := TasksOf(brd)
	for i, t := range list {
		if t.State != TaskDone {
			delete(b.done, t.ID)
			continue
		}
		by, known := b.done[t.ID]
		if !known {
			var err error
			if by, err = b.tickedBy(t.ID); err != nil {
				return nil, err
			}
			b.done[t.ID] = by
		}
		list[i].By = by
	}
	return list, nil
}

// tickedBy finds the agent that ticked a task last.
func (b *BoardReader) tickedBy(task string) (string, error) {
	if b.file.Log == "" {
		return "", nil
	}
	records, err := b.file.History(task)
	if err != nil {
		return "", err
	}
	for _, r := range slices.Backward(records) {
		for _, c := range r.Changes {
			if c.What == board.Marked && c.To == string(board.Done) {
				return r.Who, nil
			}
		}
	}
	return "", nil
}

// edit changes the board under its lock, on behalf of an agent, and returns the
// reading after it.
func (b *BoardReader) edit(ctx context.Context, agent string, change func(*board.Board) error) (Input, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	file := b.file
	file.Who = agent
	brd, _, err := file.Update(ctx, change)
	if err != nil {
		return Input{}, err
	}
	tasks, err := b.tasks(brd)
	if err != nil {
		return Input{}, err
	}
	b.rev++
	return Input{Rev: b.rev, Tasks: tasks}, nil
}

// claim marks an open task as taken by an agent.
func (b *BoardReader) claim(ctx context.Context, task, agent string) (Input, error) {
	return b.edit(ctx, agent, func(brd *board.Board) error {
		t, ok := brd.Task(task)
		switch {
		case !ok:
			return fmt.Errorf("^%s: %w", task, board.ErrNoTask)
		case t.State == board.Claimed && t.Claim == agent:
			return nil
		case t.State != board.Open:
			return fmt.Errorf("^%s is %s by now", task, t.State)
		}
		return errors.Join(brd.SetClaim(task, agent), brd.SetState(task, board.Claimed))
	})
}

// mark writes what became of a task. A task that goes back to the board loses
// the agent's name; one that a person settled meanwhile stays as it is, and so
// does one that waits for a person by somebody else's hand.
func (b *BoardReader) mark(ctx context.Context, e Effect) (Input, error) {
	who := e.Agent
	if e.State == TaskActive {
		who = "" // our own doing
	}
	return b.edit(ctx, who, func(brd *board.Board) error {
		t, ok := brd.Task(e.Task)
		if e.State == TaskActive && !e.Held && ok && t.State == board.Done { // an agent's tick is put back
			return brd.SetState(e.Task, board.Claimed)
		}
		ours := ok && e.Held && t.State == board.Waiting && slices.Contains(t.Assignees, e.Agent)
		if !ok || t.State != board.Claimed && !ours {
			return nil
		}
		err := errors.Join(brd.SetState(e.Task, boardState(e.State)), brd.SetReason(e.Task, e.Why))
		if e.State == TaskOpen {
			err = errors.Join(err, brd.ClearClaim(e.Task, e.Agent))
		}
		return err
	})
}

// TasksOf is a board as the reducer needs it, without who ticked what.
func TasksOf(brd *board.Board) []Task {
	list := []Task{}
	for _, t := range brd.Tasks() {
		if t.ID == "" || t.State == board.Unknown {
			continue // reported among the board's problems
		}
		children := len(brd.Children(t)) > 0
		list = append(list, Task{
			ID: t.ID, Text: t.Text, Body: t.Body, State: taskState(brd.Effective(t)),
			Names: t.Assignees, After: t.After, Check: t.Check, Priority: t.Priority, Claim: t.Claim,
			Group:  children && t.Body == "",
			Ready:  brd.IsReady(t) && (!children || t.Body != ""),
			Reason: t.Reason,
		})
	}
	return list
}

func taskState(s board.State) TaskState {
	switch s {
	case board.Open:
		return TaskOpen
	case board.Claimed:
		return TaskActive
	case board.Done:
		return TaskDone
	case board.Blocked:
		return TaskBlocked
	case board.Cancelled:
		return TaskCancelled
	case board.Waiting, board.Unknown:
	}
	return TaskWaiting
}

func boardState(s TaskState) board.State {
	switch s {
	case TaskOpen:
		return board.Open
	case TaskActive:
		return board.Claimed
	case TaskDone:
		return board.Done
	case TaskBlocked:
		return board.Blocked
	case TaskCancelled:
		return board.Cancelled
	case TaskWaiting:
	}
	return board.Waiting
}
