package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/resource"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
)

// folder makes an app whose person types typed, and a project that brings a
// setting along.
func folder(t *testing.T, typed string) (a *app.App, dir string, out *bytes.Buffer) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(root, "src", "proj")
	if err := os.MkdirAll(filepath.Join(dir, ".muntin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(resource.SettingsFile(dir), []byte("theme: night\ntrust: always\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = &bytes.Buffer{}
	return &app.App{
		Streams: term.Plain(strings.NewReader(typed), out, out), Theme: term.DefaultTheme(), Now: time.Now,
		Layout:  state.Layout{State: filepath.Join(root, "state"), Config: filepath.Join(root, "config")},
		Environ: []string{"HOME=" + filepath.Join(root, "home")},
	}, dir, out
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed   string
		trusted bool
		kept    string // the folder that a decision was kept for
		rest    string // what was not read of the input
	}{
		{"y\nfirst prompt\n", true, "src/proj", "first prompt\n"},
		{"what\nYES\n", true, "src/proj", ""},
		{"p\n", true, "src", ""},
		{"o\n", true, "", ""},
		{"n\n", false, "src/proj", ""},
		{"\nx", false, "", "x"},
		{"", false, "", ""},
		{"y", false, "", ""}, // the input ended: nobody pressed Enter
	} {
		a, dir, out := folder(t, c.typed)
		p, err := Open(t.Context(), Options{App: a, Dir: dir, Ask: true})
		if err != nil {
			t.Fatalf("%q: %v", c.typed, err)
		}
		if p.Trust.Trusted != c.trusted || (p.Settings.Theme == "night") != c.trusted {
			t.Errorf("%q: %+v, theme %q", c.typed, p.Trust, p.Settings.Theme)
		}
		for _, want := range []string{filepath.Join(dir, ".muntin", "settings.yaml"), "not a sandbox"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: %q is missing in\n%s", c.typed, want, out)
			}
		}
		list, err := Store(a).List()
		kept := ""
		if len(list) == 1 {
			kept = list[0].Folder
		}
		if err != nil || c.kept == "" && kept != "" || c.kept != "" && !strings.HasSuffix(kept, "/"+c.kept) {
			t.Errorf("%q: kept %q, %v", c.typed, kept, err)
		}
		rest := make([]byte, 100)
		n, _ := a.Streams.In.Read(rest)
		if string(rest[:n]) != c.rest {
			t.Errorf("%q: left %q", c.typed, rest[:n])
		}
	}
}

func TestNobodyIsAskedWithoutAPerson(t *testing.T) {
	t.Parallel()
	a, dir, out := folder(t, "y\n")
	p, err := Open(t.Context(), Options{App: a, Dir: dir})
	if err != nil || p.Trust.Trusted || !p.Trust.Open || p.Settings.Theme != "" || out.Len() > 0 {
		t.Errorf("%+v, %v, %s", p.Trust, err, out)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], ".muntin/settings.yaml") {
		t.Errorf("%v", p.Notes)
	}
	empty := t.TempDir()
	if p, err = Open(t.Context(), Options{App: a, Dir: empty, Ask: true}); err != nil || p.Trust.Open || len(p.Notes) > 0 || out.Len() > 0 {
		t.Errorf("a folder with nothing to trust: %+v, %v, %s", p, err, out)
	}
}

// BenchmarkOpen is what every start of the agent pays.
func BenchmarkOpen(b *testing.B) {
	root := b.TempDir()
	a := &app.App{Layout: state.Layout{State: filepath.Join(root, "state"), Config: filepath.Join(root, "config")}, Now: time.Now}
	for b.Loop() {
		if _, err := Open(b.Context(), Options{App: a, Dir: root}); err != nil {
			b.Fatal(err)
		}
	}
}
