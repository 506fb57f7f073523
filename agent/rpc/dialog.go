package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"muntin/agent"
	"muntin/agent/harness"
)

// dialogs are the questions of extensions that the client has not answered yet.
type dialogs struct {
	mu   sync.Mutex // guards all below
	last int
	open map[string]chan harness.Answer
}

// Ask implements harness.UI: the question goes to the client, in Pi's form.
func (s *Server) Ask(ctx context.Context, q harness.Question) harness.Answer {
	d := &s.dialogs
	answered := make(chan harness.Answer, 1)
	d.mu.Lock()
	d.last++
	id := "ui-" + strconv.Itoa(d.last)
	if d.open == nil {
		d.open = map[string]chan harness.Answer{}
	}
	d.open[id] = answered
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, id)
	}()
	o := object{"type": "extension_ui_request", "id": id, "method": q.Kind, "title": q.Title, "extension": q.Extension}
	if q.Text != "" {
		o["message"] = q.Text
	}
	if len(q.Options) > 0 {
		o["options"] = q.Options
	}
	if q.Default != "" {
		o["placeholder"] = q.Default
	}
	if q.Timeout > 0 {
		o["timeout"] = q.Timeout
	}
	s.out.write(o)
	select {
	case a := <-answered:
		return a
	case <-ctx.Done():
		return harness.Answer{}
	}
}

// answerDialog takes the client's answer to a question.
func (s *Server) answerDialog(line []byte) {
	var r struct {
		ID        string  `json:"id"`
		Value     *string `json:"value"`
		Confirmed *bool   `json:"confirmed"`
		Cancelled bool    `json:"cancelled"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return // there is no form for a refusal of an answer
	}
	a := harness.Answer{Answered: !r.Cancelled && (r.Value != nil || r.Confirmed != nil)}
	if r.Value != nil {
		a.Value = *r.Value
	}
	if r.Confirmed != nil {
		a.Confirmed = *r.Confirmed
	}
	d := &s.dialogs
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.open[r.ID]; c != nil {
		delete(d.open, r.ID)
		c <- a
	}
}

// Notify implements harness.UI.
func (s *Server) Notify(n harness.Notice) {
	level := n.Level
	if level != "warning" && level != "error" {
		level = "info"
	}
	s.out.write(object{"type": "extension_ui_request", "method": "notify", "message": n.Text, "notifyType": level, "extension": n.Extension})
}

// Status implements harness.UI.
func (s *Server) Status(t harness.Status) {
	s.out.write(object{"type": "extension_ui_request", "method": "setStatus", "statusKey": t.Extension, "statusText": t.Text})
}

// Waiting goes on with messages that came while no run went on; see
// harness.Options.OnWaiting.
func (s *Server) Waiting() {
	s.mu.Lock()
	ready := s.agent != nil && s.agent.Queued() > 0 && s.ctx.Err() == nil
	s.mu.Unlock()
	if !ready {
		return
	}
	h, end := s.begin()
	if end == nil {
		return // the run that goes on takes them
	}
	s.work.Go(func() {
		s.runOn(h, end, func() error {
			_, err := h.Continue(s.ctx)
			if errors.Is(err, agent.ErrNothingToContinue) {
				return nil
			}
			return err
		})
	})
}
