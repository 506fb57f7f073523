package history

import (
	"encoding/json"
	"fmt"
	"strings"

	"muntin/agent/pty"
)

// agentLog reads an agent's event log.
func agentLog(name string) func(line []byte) []Event {
	return func(line []byte) []Event {
		var e pty.Event
		if json.Unmarshal(line, &e) != nil || e.Time.IsZero() {
			return nil // a foreign line costs that line only
		}
		return []Event{fromLog(name, e)}
	}
}

func fromLog(agent string, e pty.Event) Event {
	out := Event{Time: e.Time, Seq: e.Seq, Agent: agent, Who: agent, Turn: e.Turn, Log: &e, Kind: KindAgent, What: string(e.Kind)}
	switch {
	case e.Kind == pty.EventStart && e.Start != nil:
		out.What, out.Text = "started", strings.Join(e.Start.Argv, " ")
	case e.Kind == pty.EventExit:
		out.What, out.Text = "ended", exitText(e)
	case e.Message != nil:
		out.message(*e.Message)
	case e.TurnStart != nil:
		out.Kind, out.What, out.Task, out.ID = KindTurn, "started", e.TurnStart.Task, e.TurnStart.Message
		if out.ID == "" {
			out.Who, out.Text = Person, "begun in the pane"
		}
	case e.TurnEnd != nil:
		out.Kind, out.What, out.Task, out.ID = KindTurn, string(e.TurnEnd.Reason), e.TurnEnd.Task, e.TurnEnd.Message
		out.Text = strings.TrimSpace(e.TurnEnd.Error + "\n" + e.TurnEnd.Text)
	case e.Tool != nil:
		out.Kind, out.What, out.Text = KindTool, "used", strings.TrimSpace(e.Tool.Name+" "+e.Tool.Summary)
		if e.Tool.IsError {
			out.What = "failed"
		}
	case e.Usage != nil:
		out.Kind, out.What = KindUsage, "so far"
	case e.Waiting != nil:
		out.Kind, out.What, out.Text = KindWaiting, string(e.Waiting.For), e.Waiting.Text
	case e.Limit != nil:
		out.Kind, out.What, out.Text = KindLimit, string(e.Limit.Kind), e.Limit.Text
	case e.Warning != nil:
		out.Kind, out.What, out.Text = KindWarning, "", e.Warning.Text
	case e.Checkpoint != nil:
		out.Kind, out.What = KindCheckpoint, e.Checkpoint.Cause
		out.Text = fmt.Sprintf("#%d %.8s, %s", e.Checkpoint.ID, e.Checkpoint.Commit, files(e.Checkpoint.Files))
	case e.Kind == pty.EventCheckpointFailed:
		out.Kind, out.What, out.Text = KindCheckpoint, "failed", e.Error
	}
	return out
}

func (out *Event) message(m pty.MessageInfo) {
	out.Kind, out.What, out.Task, out.ID, out.Text = KindMessage, string(m.State), m.Task, m.ID, m.Why
	if m.State == pty.StateQueued && m.Text+string(m.Kind) != "" {
		out.Kind, out.What, out.Text = KindPrompt, string(m.Kind), m.Text
	}
	if out.Kind == KindPrompt {
		out.Who = m.From
		if m.From == "user" || m.From == "" {
			out.Who = Person
		}
	}
}

func exitText(e pty.Event) string {
	switch {
	case e.Error != "":
		return e.Error
	case e.Exit == nil:
		return ""
	case e.Exit.Signal != "":
		return "signal " + e.Exit.Signal
	}
	return fmt.Sprintf("status %d", e.Exit.Code)
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
