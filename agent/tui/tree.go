package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/internal/term"
)

// A turnPoint is a message of a person in the tree.
type turnPoint struct {
	id, parent string
	text       string
	depth      int    // how many branchings lie above it
	onBranch   bool   // on the way from the root to the leaf
	label      string // a word that it was marked with
	saved      *Checkpoint
}

// users are the messages of persons on all branches, in the order of the file.
func (l *loop) users() ([]turnPoint, error) {
	s := l.Agent().Session()
	nodes := map[string]session.Node{}
	for _, n := range s.Nodes() {
		nodes[n.ID] = n
	}
	var all []turnPoint
	err := s.All(func(e session.Entry) error {
		if e.Type == session.TypeMessage && e.Message != nil && e.Message.Role == llm.RoleUser {
			n := nodes[e.ID]
			all = append(all, turnPoint{id: e.ID, parent: n.Parent, text: e.Message.Text(), onBranch: n.OnBranch, label: n.Label})
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("nothing was said yet")
	}
	ways := map[string]map[string]bool{} // from an entry down to messages
	for _, p := range all {
		for at := p.id; at != "" && !ways[nodes[at].Parent][at]; at = nodes[at].Parent {
			if up := nodes[at].Parent; ways[up] == nil {
				ways[up] = map[string]bool{}
			}
			ways[nodes[at].Parent][at] = true
		}
	}
	for i, p := range all {
		for up := p.parent; up != ""; up = nodes[up].Parent {
			if len(ways[up]) > 1 {
				all[i].depth++
			}
		}
	}
	return all, err
}

func labels(points []turnPoint) []item {
	var items []item
	for _, p := range points {
		mark := "  "
		if p.onBranch {
			mark = "● "
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(p.text), "\n")
		if rest != "" {
			first += " …"
		}
		label := strings.Repeat("  ", min(p.depth, 8)) + mark + term.CleanLine(first)
		if p.label != "" {
			label += "  [" + term.CleanLine(p.label) + "]"
		}
		detail := ""
		if p.saved != nil {
			detail = "checkpoint #" + p.saved.ID
		}
		items = append(items, item{label: label, detail: detail})
	}
	return items
}

// withCheckpoints finds for each message the checkpoint of the files before it: the
// one that was saved at the entry above it, or else at the message itself.
func (l *loop) withCheckpoints(ctx context.Context, points []turnPoint) error {
	if l.opts.Host.Checkpoints == nil {
		return nil
	}
	saved, err := l.opts.Host.Checkpoints.List(ctx)
	if err != nil {
		return err
	}
	at := map[string]*Checkpoint{}
	for i := range saved { // newest first: the oldest of an entry counts, it was before the turn
		at[saved[i].Entry] = &saved[i]
	}
	nodes := map[string]string{}
	for _, n := range l.Agent().Session().Nodes() {
		nodes[n.ID] = n.Parent
	}
	for i, p := range points {
		for up := p.parent; ; up = nodes[up] {
			if c := at[up]; c != nil && (up != "" || c.Entry == "") {
				points[i].saved = c
				break
			}
			if up == "" {
				break
			}
		}
	}
	return nil
}

// What goes back.
const (
	backTalk = iota
	backFiles
	backBoth
)

// tree walks the conversation; from a message one goes back to before it.
func (l *loop) tree(ctx context.Context, _ Asker, _ string) (string, error) {
	p, err := l.choosePoint(ctx, "Go back to before which message?")
	if err != nil {
		return "", err
	}
	what := backTalk
	if p.saved != nil {
		if what, err = l.choose(ctx, question{title: "What goes back?", items: []item{
			{label: "the conversation"}, {label: "the files", detail: "to checkpoint #" + p.saved.ID}, {label: "both"},
		}, at: backBoth}); err != nil {
			return "", err
		}
	}
	return l.goBack(ctx, p, what)
}

func (l *loop) choosePoint(ctx context.Context, title string) (turnPoint, error) {
	points, err := l.users()
	if err != nil {
		return turnPoint{}, err
	}
	if err := l.withCheckpoints(ctx, points); err != nil {
		return turnPoint{}, err
	}
	i, err := l.choose(ctx, question{title: title, items: labels(points), at: len(points) - 1})
	if err != nil {
		return turnPoint{}, err
	}
	return points[i], nil
}

// A wayBack is what /rollback undo takes back.
type wayBack struct {
	leaf  string
	talk  bool
	files bool
}

// goBack goes to before a message. The conversation goes first: it can be taken
// back when the files cannot be restored.
func (l *loop) goBack(ctx context.Context, p turnPoint, what int) (string, error) {
	h := l.Agent()
	back := wayBack{leaf: h.Session().Leaf()}
	var told []string
	if what != backFiles {
		if _, err := h.Navigate(ctx, harness.Navigation{Entry: p.id}); err != nil {
			return "", err
		}
		back.talk = true
		told = append(told, "The conversation is as before that message, whose text is in the editor.")
	}
	if what != backTalk {
		if p.saved == nil {
			return "", errors.New("no checkpoint belongs to that message")
		}
		report, err := l.opts.Host.Checkpoints.Restore(ctx, p.saved.ID)
		if err != nil {
			if back.talk {
				_, undo := h.Navigate(context.WithoutCancel(ctx), harness.Navigation{Entry: back.leaf, Exact: true})
				err = errors.Join(err, undo)
			}
			return "", err
		}
		back.files = true
		told = append(told, report)
	}
	if back.talk {
		l.display.giveBack([]string{p.text})
	}
	l.back = &back
	if l.opts.Host.Checkpoints != nil {
		told = append(told, "`/rollback undo` takes it back.")
	}
	return strings.Join(told, "\n"), nil
}

// rollback is /tree for both, and the way back from either.
func (l *loop) rollback(ctx context.Context, _ Asker, arg string) (string, error) {
	if arg == "undo" {
		return l.undo(ctx)
	}
	if arg != "" {
		return "", fmt.Errorf("%q is not known: /rollback, or /rollback undo", arg)
	}
	p, err := l.choosePoint(ctx, "Files and conversation back to before which message?")
	if err != nil {
		return "", err
	}
	return l.goBack(ctx, p, backBoth)
}

func (l *loop) undo(ctx context.Context) (string, error) {
	back := l.back
	if back == nil {
		return "", errors.New("there is nothing to take back")
	}
	var told []string
	if back.files {
		report, err := l.opts.Host.Checkpoints.Undo(ctx)
		if err != nil {
			return "", err
		}
		told = append(told, report)
		back.files = false
	}
	if back.talk {
		if _, err := l.Agent().Navigate(ctx, harness.Navigation{Entry: back.leaf, Exact: true}); err != nil {
			return "", err
		}
		told = append(told, "The conversation is as it was.")
	}
	l.back = nil
	return strings.Join(told, "\n"), nil
}

func (l *loop) checkpoints(ctx context.Context, _ Asker, _ string) (string, error) {
	all, err := l.opts.Host.Checkpoints.List(ctx)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "There are no checkpoints yet: one is saved before each turn, unless the setting checkpoints is off.", nil
	}
	var b strings.Builder
	b.WriteString("| # | When | Files | |\n|---|---|---|---|\n")
	const shown = 30
	for i, c := range all {
		if i == shown {
			fmt.Fprintf(&b, "\n%d older ones: `muntin checkpoint ls`\n", len(all)-shown)
			break
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", c.ID, ago(l.opts.Now().Sub(c.Time)), c.Files, strings.ReplaceAll(term.CleanLine(c.Title), "|", "\\|"))
	}
	return b.String(), nil
}

func (l *loop) diff(ctx context.Context, _ Asker, id string) (string, error) {
	patch, err := l.opts.Host.Checkpoints.Patch(ctx, id)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(patch) == "" {
		return "Nothing has changed.", nil
	}
	return "~~~~~~diff\n" + term.Clean(patch) + "\n~~~~~~", nil
}
