package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"muntin/internal/durable"
	"muntin/internal/id"
	"muntin/internal/state"
	"muntin/orchestrator/watch"
)

// A Request is what a person asks of a run's orchestrator: a line of
// requests.jsonl in the run's folder. It can be made while none is at work, and
// is taken once, by its id.
type Request struct {
	ID     string        `json:"id"`
	Time   time.Time     `json:"time"`
	Budget *BudgetChange `json:"budget,omitempty"`
	Leave  *Leave        `json:"leave,omitempty"`

	Verdict *Verdict `json:"verdict,omitempty"`
}

func requestsPath(d state.RunDir) string { return filepath.Join(d.Path, "requests.jsonl") }

// Ask leaves a request for the run's orchestrator, and fills in its ID and
// Time. It is durable when Ask returns; ctx bounds the wait for others who ask.
func Ask(ctx context.Context, run Run, req Request, now time.Time) (_ Request, err error) {
	req.ID, req.Time = id.New(now), now
	path := requestsPath(run.Dir)
	lock, err := durable.Lock(ctx, path+".lock")
	if err != nil {
		return req, fmt.Errorf("asking the orchestrator of run %s: %w", run.Name, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	log, err := durable.OpenLog(path)
	if err != nil {
		return req, fmt.Errorf("asking the orchestrator of run %s: %w", run.Name, err)
	}
	if err = log.Append(req); err == nil {
		err = log.Sync()
	}
	return req, errors.Join(err, log.Close())
}

// asked takes a request that was not taken before.
func (r *step) asked(req Request) {
	if _, known := r.state.Requests[req.ID]; known {
		return
	}
	r.state.Requests = maps.Clone(r.state.Requests)
	r.state.Requests[req.ID] = struct{}{}
	if req.Budget != nil {
		r.budget(*req.Budget)
	}
	if req.Verdict != nil {
		r.verdict(*req.Verdict)
	}
	if req.Leave != nil {
		r.leave(*req.Leave)
	}
}

// followRequests tells of what people ask for that the journal does not have.
func (s *server) followRequests(ctx context.Context, st State) error {
	tail, err := watch.Follow(ctx, watch.Options{}, func(line watch.Line) error {
		if line.Err != nil {
			return fmt.Errorf("following requests: %w", line.Err)
		}
		var req Request
		if json.Unmarshal(line.Data, &req) != nil {
			return nil // a foreign line costs that line only
		}
		if _, known := st.Requests[req.ID]; known {
			return nil
		}
		return s.send(ctx, Input{Kind: InputAsked, Request: &req})
	})
	if err != nil {
		return err
	}
	defer tail.Close()
	if err := tail.Add(requestsPath(s.Run.Dir), 0); err != nil {
		return err
	}
	return tail.Wait()
}
