package harness

import (
	"context"
	"fmt"

	"muntin/agent/llm"
	"muntin/agent/session"
)

// Session is the conversation's session, to look at, to name and to label. Its
// leaf is moved by Navigate, so that the agent moves with it.
func (h *Harness) Session() *session.Session { return h.session }

// A Navigation says where in the tree the conversation goes on.
type Navigation struct {
	Entry        string // "" is the root
	Exact        bool   // to a message of the user itself, not to before it
	Summarise    bool   // leave a summary of the branch that is left
	Instructions string // what the summary should heed
}

// Navigate moves to another entry. A message of the user is moved to just before
// it, and its text is returned to be sent again, changed or not. It fails as
// Compact does, and then has moved nothing.
func (h *Harness) Navigate(ctx context.Context, n Navigation) (text string, err error) {
	err = h.idle(ctx, func(ctx context.Context) error {
		if err := h.MaySwitch(ctx, SwitchNavigate, n.Entry); err != nil {
			return err
		}
		target := n.Entry
		if target != "" {
			e, err := h.session.Entry(target)
			if err != nil {
				return err
			}
			if !n.Exact && e.Type == session.TypeMessage && e.Message != nil && e.Message.Role == llm.RoleUser {
				text, target = e.Message.Text(), ""
				if e.ParentID != nil {
					target = *e.ParentID
				}
			}
		}
		if err := h.move(ctx, target, n); err != nil {
			return err
		}
		h.room.since.Store(h.now().UnixMilli())
		return h.kernel.SetMessages(h.session.Messages())
	})
	if err != nil {
		return "", fmt.Errorf("moving in the conversation: %w", err)
	}
	return text, nil
}

func (h *Harness) move(ctx context.Context, target string, n Navigation) error {
	left := itemsOf(h.session.Abandoned(target))
	if !n.Summarise || len(left) == 0 {
		return h.session.Move(target)
	}
	res, err := h.summariser().Branch(ctx, left, n.Instructions)
	if err != nil {
		return err
	}
	_, err = h.session.MoveWithSummary(target, session.Entry{Summary: res.Summary, Details: res.Details(), Usage: &res.Usage})
	return err
}
