package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/term"
)

// excerptWidth is how much of a message a line shows, in bytes.
const excerptWidth = 100

// shown is what `show --json` prints.
type shown struct {
	Header   session.Header  `json:"header"`
	Path     string          `json:"path"`
	Name     string          `json:"name,omitempty"`
	Leaf     string          `json:"leaf"`
	Entries  []session.Entry `json:"entries"` // from the root to the leaf
	Problems []string        `json:"problems,omitempty"`
}

func newShow(o *Options) *cobra.Command {
	return o.jsonFlag(&cobra.Command{
		Use:   "show <session>",
		Short: "Show a session's conversation, a line a message",
		Long:  "Show a session from its beginning to where it stands, a line a message. The whole of\nit: muntin session export.",
		Args:  app.Args(1, 1, "a session"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			s, err := o.read(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			if o.JSON {
				return o.showJSON(s)
			}
			return o.show(s)
		}),
	})
}

func (o *Options) showJSON(s *session.Session) error {
	out := shown{Header: s.Header(), Path: s.Path(), Name: s.Name(), Leaf: s.Leaf(), Entries: s.Branch()}
	if out.Entries == nil {
		out.Entries = []session.Entry{}
	}
	for _, p := range s.Problems() {
		out.Problems = append(out.Problems, p.String())
	}
	return o.App.PrintJSON(out)
}

func (o *Options) show(s *session.Session) error {
	a, h := o.App, s.Header()
	for _, row := range [][2]string{{"session", h.ID}, {"name", s.Name()}, {"file", s.Path()}, {"folder", h.Cwd}, {"begun", h.Timestamp}, {"from", h.ParentSession}} {
		if row[1] != "" {
			fmt.Fprintf(a.Streams.Out, "%s %s\n", a.Theme.Dim.Render(fmt.Sprintf("%-8s", row[0])), term.CleanLine(row[1]))
		}
	}
	fmt.Fprintln(a.Streams.Out)
	err := s.Each(func(e session.Entry) error {
		if line := o.line(e); line != "" {
			fmt.Fprintf(a.Streams.Out, "%s %s\n", a.Theme.Dim.Render(term.CleanLine(e.ID)), line)
		}
		return nil
	})
	o.warn(s)
	return err
}

// line is an entry on one line; "" for one that says nothing to people.
func (o *Options) line(e session.Entry) string {
	var who, text string
	switch {
	case e.Type == session.TypeCompaction:
		who, text = "compacted", e.Summary
	case e.Type == session.TypeBranchSummary:
		who, text = "came back", e.Summary
	case e.Type != session.TypeMessage || e.Message == nil:
		return ""
	default:
		who, text = speaker(*e.Message)
	}
	if who == "" {
		return ""
	}
	return o.App.Theme.Strong.Render(who) + " " + term.CleanLine(session.Excerpt(llm.UserText(text, 0), excerptWidth))
}

func speaker(m llm.Message) (who, text string) {
	text = m.Text()
	switch m.Role {
	case llm.RoleUser:
		return "user", text
	case llm.RoleTool:
		if m.IsError {
			return m.ToolName + " failed", text
		}
		return m.ToolName + " gave", text
	case llm.RoleAssistant:
		for _, call := range m.ToolCalls() {
			text += fmt.Sprintf(" [%s %s]", call.Name, call.Arguments)
		}
		if m.ErrorMessage != "" {
			text += " (failed: " + m.ErrorMessage + ")"
		}
		return "agent", text
	}
	return "", ""
}

// treeNode is an entry as `tree --json` prints it.
type treeNode struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Type   string `json:"type"`
	Role   string `json:"role,omitempty"`
	Label  string `json:"label,omitempty"`
	Text   string `json:"text,omitempty"` // the start of it
	Branch bool   `json:"onBranch"`
	Leaf   bool   `json:"leaf,omitempty"`
	line   string
}

func newTree(o *Options) *cobra.Command {
	return o.jsonFlag(&cobra.Command{
		Use:   "tree <session>",
		Short: "Show all branches of a session",
		Args:  app.Args(1, 1, "a session"),
		RunE: o.App.Interruptible(func(_ context.Context, args []string) error {
			s, err := o.read(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			nodes, err := o.nodes(s)
			if err != nil {
				return err
			}
			if o.JSON {
				return o.App.PrintJSON(nodes)
			}
			o.printTree(nodes)
			o.warn(s)
			return nil
		}),
	})
}

func (o *Options) nodes(s *session.Session) ([]treeNode, error) {
	leaf := s.Leaf()
	nodes := []treeNode{}
	for _, n := range s.Nodes() {
		e, err := s.Entry(n.ID)
		if err != nil {
			return nil, err
		}
		t := treeNode{ID: n.ID, Parent: n.Parent, Type: e.Type, Label: n.Label, Branch: n.OnBranch, Leaf: n.ID == leaf, line: o.line(e)}
		if e.Message != nil {
			t.Role, t.Text = string(e.Message.Role), session.Excerpt(*e.Message, excerptWidth)
		}
		nodes = append(nodes, t)
	}
	return nodes, nil
}

// printTree prints entries that say something, and steps in where the
// conversation divides. An entry that says nothing passes its children on.
func (o *Options) printTree(nodes []treeNode) {
	shownAs := map[string]string{"": ""} // entry → the nearest one above that is shown
	children := map[string][]int{}
	at := ""
	for i, n := range nodes {
		parent := shownAs[n.Parent]
		shownAs[n.ID] = parent
		if n.line != "" {
			shownAs[n.ID] = n.ID
			children[parent] = append(children[parent], i)
		}
		if n.Leaf {
			at = shownAs[n.ID]
		}
	}
	type step struct{ node, depth int }
	var todo []step
	push := func(parent string, depth int) {
		below := children[parent]
		if len(below) > 1 {
			depth++
		}
		for i := len(below) - 1; i >= 0; i-- {
			todo = append(todo, step{below[i], depth})
		}
	}
	push("", -1)
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := nodes[next.node]
		o.printNode(n, max(next.depth, 0), n.ID == at)
		push(n.ID, next.depth)
	}
}

func (o *Options) printNode(n treeNode, depth int, leaf bool) {
	t := o.App.Theme
	mark := "○"
	if n.Branch {
		mark = t.Good.Render("●")
	}
	text := n.line
	if n.Label != "" {
		text += " " + t.Good.Render("#"+term.CleanLine(n.Label))
	}
	if leaf {
		text += " " + t.Good.Render("← here")
	}
	fmt.Fprintf(o.App.Streams.Out, "%s%s %s %s\n", strings.Repeat("  ", depth), mark, t.Dim.Render(term.CleanLine(n.ID)), text)
}
