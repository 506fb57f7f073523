package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/agent/harness"
	"muntin/agent/llm"
	"muntin/agent/llm/scripted"
	"muntin/agent/session"
)

// shelf are checkpoints without files: what was asked of them counts.
type shelf struct {
	saved []Checkpoint
	done  []string
}

func (s *shelf) Save(_ context.Context, entry, message string) error {
	s.saved = append([]Checkpoint{{ID: fmt.Sprint(len(s.saved) + 1), Title: "before " + message, Entry: entry, Time: time.Now()}}, s.saved...)
	return nil
}
func (s *shelf) List(context.Context) ([]Checkpoint, error) { return s.saved, nil }
func (s *shelf) Restore(_ context.Context, id string) (string, error) {
	s.done = append(s.done, "restore "+id)
	return "Files restored to " + id + ".", nil
}
func (s *shelf) Undo(context.Context) (string, error) {
	s.done = append(s.done, "undo")
	return "Files as before.", nil
}
func (s *shelf) Patch(_ context.Context, id string) (string, error) {
	return "--- a/x" + id + "\n+++ b/x\n+new\n", nil
}

// commandUI is a front end with everything that commands reach, on a session file.
func commandUI(t *testing.T) (*ui, *shelf) {
	t.Helper()
	sessions, saved := t.TempDir(), &shelf{}
	model, err := scripted.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	provider := scripted.New(model, scripted.Options{})
	made := 0
	u := run(t, func(s *setup) {
		s.session = filepath.Join(sessions, "s0.jsonl")
		dir := s.dir
		s.opts.Dir = dir
		s.opts.History = filepath.Join(sessions, "history.jsonl")
		s.opts.Width = func() int { return 100 }
		s.opts.Host = Host{
			Open: func(ctx context.Context, at Place, attach func(*harness.Options)) (*harness.Harness, error) {
				o := harness.Options{Provider: provider, Model: "scripted/test", Dir: dir, Session: at.File, Parent: at.Parent}
				attach(&o)
				return harness.Open(ctx, o)
			},
			NewFile:  func() (string, error) { made++; return filepath.Join(sessions, fmt.Sprintf("s%d.jsonl", made)), nil },
			Sessions: func() ([]session.Info, error) { return session.List(sessions) },
			Models: func() []llm.Model {
				return []llm.Model{{Provider: "scripted", ID: "test"}, {Provider: "scripted", ID: "other", ContextWindow: 9000}}
			},
			OpenModel: func(_ context.Context, name string) (harness.Model, llm.Level, error) {
				if !strings.HasPrefix(name, "scripted/") {
					return harness.Model{}, "", fmt.Errorf("there is no model %s", name)
				}
				return harness.Model{Provider: provider, Name: name}, "", nil
			},
			Export: func(path string, _ *session.Session) (string, error) {
				return path, os.WriteFile(path, []byte("page"), 0o600)
			},
			Checkpoints: saved,
			Branch:      func() string { return "main" },
			Commands: []Command{{Name: "todo", Help: "the board", Run: func(ctx context.Context, ask Asker, arg string) (string, error) {
				word, err := ask.Text(ctx, "Which word?", "")
				return "# Board of " + word + arg, err
			}}},
		}
	})
	return u, saved
}

func TestCommands(t *testing.T) {
	t.Parallel()
	u, saved := commandUI(t)
	say := func(line string, want ...string) {
		t.Helper()
		u.out.mark()
		u.typeLine(line)
		u.seeSince(want...)
	}
	say("/help", "/checkpoints", "/quit", "runs a shell command")
	say("/hotkeys", "Alt+Enter", "send after the turn")
	say("/nosuch", "There is no command /nosuch")
	say("/copy", "/copy: there is no answer yet")
	say("/rollback undo", "there is nothing to take back")
	say("hello", "hello yourself", "✓ ")
	say("hello again", "hello yourself", "✓ ")
	say("/copy", "Copied 14 characters")
	say("/session", "s0.jsonl", "2 from you, 2 answers")
	say("/name a\tname", "")
	say("/thinking", "How much", "  1  off")
	say("5", "")
	say("/thinking nosuch", `"nosuch" is no level`)
	say("/model", "Which model?", "  2  scripted/other  9.0k")
	say("2", "")
	say("/model foo/bar", "there is no model foo/bar")
	u.until("the model's change", func() bool { return u.front().Model().Name == "scripted/other" })
	say("/todo x", "Which word?")
	say("mine", "Board of minex")
	say("/checkpoints", "before hello again", "before hello")
	say("/diff 2", "--- a/x2", "+new")
	say("/export out.html", "The conversation is in "+filepath.Join(u.dir, "out.html"))
	say("/plan", "There is no command")
	say("/tree", "Go back to before which message?", "  1  ● hello  checkpoint #1", "  2  ● hello again  checkpoint #2")
	say("2", "What goes back?", "  3  both")
	say("3", "not sent: hello again", "conversation is as before", "Files restored to 2.")
	say("/rollback undo", "Files as before.", "conversation is as it was")
	say("/rollback", "back to before which", "  1  ● hello", "  2  ● hello again")
	say("", "")
	say("/fork", "Begin again from which message?")
	say("2", "A new conversation")
	u.until("the fork", func() bool { return len(u.front().Messages()) == 2 })
	say("/clone", "A copy of the conversation")
	say("/new", "A new conversation.")
	say("/fork", "/fork: nothing was said yet")
	say("/resume", "Go on with which", "  4  a name")
	say("4", "4 messages of this conversation came before")
	say("/compact now", "/compact: ")
	say("!echo sh''own; exit 3", "● !  echo", "shown", "Command exited with code 3")
	say("!!echo hid''den", "● !!  echo", "hidden")
	say("/quit", "")
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(saved.done, ", "); got != "restore 2, undo" {
		t.Errorf("the checkpoints were asked for %s", got)
	}
}

func TestShellReachesTheModel(t *testing.T) {
	t.Parallel()
	u, _ := commandUI(t)
	u.typeLine("!echo sh''own")
	u.see("shown")
	u.typeLine("!!echo hid''den")
	u.see("hidden")
	u.typeLine("hello")
	u.see("hello yourself", "✓ ")
	all := ""
	for _, m := range u.front().Messages() {
		all += m.Text() + "\n"
	}
	if !strings.Contains(all, "shown") || strings.Contains(all, "hidden") {
		t.Errorf("the model sees\n%s", all)
	}
}

// A command that needs that nothing runs is not carried out during a turn; others
// are.
func TestCommandsDuringATurn(t *testing.T) {
	t.Parallel()
	u, _ := commandUI(t)
	u.typeLine("wait")
	u.until("the command's start", u.exists("up"))
	u.typeLine("/new")
	u.see("/new needs that nothing runs")
	u.typeLine("/model scripted/other")
	u.until("the model's change", func() bool { return u.front().Model().Name == "scripted/other" })
	u.make("go")
	u.see("waited", "✓ ")
}

func TestPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b c.jpg", "x.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read []string
	l := &loop{UI: New(Options{Out: &buffer{wrote: make(chan struct{}, 1)}, Dir: dir, Host: Host{
		Picture: func(path string) (llm.Block, bool, error) {
			read = append(read, filepath.Base(path))
			return llm.Block{}, true, nil
		},
	}})}
	for text, want := range map[string]string{
		"see @a.png":                        "a.png",
		"see a.png":                         "",
		dir + "/a.png " + dir + `/b\ c.jpg`: "a.png b c.jpg",
		"'" + dir + "/b c.jpg' @x.txt @missing.png": "b c.jpg",
		"file://" + dir + "/a.png it's @a.png":      "a.png",
	} {
		read = nil
		l.pictures(text)
		if got := strings.Join(read, " "); got != want {
			t.Errorf("%q: read %q, want %q", text, got, want)
		}
	}
}

func TestFuzzy(t *testing.T) {
	t.Parallel()
	files := []string{"cmd/main.go", "agent/tui/loop.go", "agent/loop_test.go", "README.md", "a/tui.txt"}
	for want, first := range map[string]string{"loop": "agent/loop_test.go", "tuilo": "agent/tui/loop.go", "read": "README.md", "main": "cmd/main.go", "tui": "a/tui.txt"} {
		m := &model{files: files}
		got := m.findFiles(want, true)
		if len(got) == 0 || got[0].label != first && want != "loop" {
			t.Errorf("%s: got %v, want %s first", want, got, first)
		}
	}
	if _, ok := fuzzy("xyz", "abc"); ok {
		t.Error("xyz is not in abc")
	}
	if _, ok := fuzzy("R", "readme"); ok {
		t.Error("a capital counts")
	}
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.go", "sub/deep/b.go", ".hidden/x", "node_modules/y"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := listFiles(t.Context(), dir, os.Environ())
	if want := []string{"a.go", "sub/deep/b.go", "sub/", "sub/deep/"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
