package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"muntin/agent/session"
	"muntin/checkpoint"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/durable"
	"muntin/orchestrator"
)

// moved is what a rollback did to a conversation, as session entries; "" is
// the beginning.
type moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A conversation is an agent's open session, which nobody else can write
// while we have it.
type conversation struct {
	agent   string
	session *session.Session
	moved   moved
}

// openConversation opens the session of an agent that is not running.
func openConversation(a *app.App, run orchestrator.Run, agent string, target checkpoint.Checkpoint) (*conversation, error) {
	file := run.Dir.Agent(agent).Session()
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil, app.Hint(fmt.Errorf("%s has no conversation that muntin keeps: it is not the built-in agent, or was never asked", agent), "without --conversation and --both, its files go back")
	}
	if target.Entry == "" && (target.Cause != checkpoint.CauseStart || target.ID != 1) {
		return nil, app.Hint(fmt.Errorf("checkpoint #%d does not say where in the conversation it was taken", target.ID), "choose that of a turn: `muntin checkpoint ls %s`", agent)
	}
	s, err := session.Open(file, session.Options{Now: a.Now})
	if errors.Is(err, durable.ErrLocked) {
		return nil, app.NeedsPerson(app.Hint(fmt.Errorf("%s is running, and a conversation cannot be moved under its agent", agent),
			"end the run with `muntin down %s`, roll back, and start it again", run.Name))
	}
	if err != nil {
		return nil, err
	}
	return &conversation{agent: agent, session: s, moved: moved{From: s.Leaf(), To: target.Entry}}, nil
}

func (c *conversation) move() error { return c.session.Move(c.moved.To) }

// back takes the move back. There may have been none.
func (c *conversation) back() error {
	if c == nil {
		return nil
	}
	return c.session.Move(c.moved.From)
}

func (c *conversation) close() {
	// Each move was synced.
	_ = c.session.Close()
}

func (c *conversation) tell(a *app.App, asJSON bool, run string) error {
	if asJSON {
		return a.PrintJSON(restoredJSON{Run: run, Agent: c.agent, Conversation: &c.moved})
	}
	to := "entry " + c.moved.To
	if c.moved.To == "" {
		to = "its beginning"
	}
	_, err := fmt.Fprintf(a.Streams.Out, "%s the conversation of %s is at %s again  %s\n",
		a.Theme.Good.Render("✓"), a.Theme.Strong.Render(c.agent), to, a.Theme.Dim.Render("was at "+c.moved.From))
	return err
}
