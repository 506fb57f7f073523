package credential_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muntin/agent/credential"
	"muntin/internal/durable"
)

// TestMain is also the program of TestManyProcesses: it prints the key it finds.
func TestMain(m *testing.M) {
	path := os.Getenv("MUNTIN_TEST_AUTH")
	if path == "" {
		os.Exit(m.Run())
	}
	from := credential.Sources{Store: credential.Open(path), Getenv: os.Getenv}
	if log := os.Getenv("MUNTIN_TEST_RENEW"); log != "" {
		from.Renew = renewFile(log)
	}
	r := credential.NewResolver(from)
	key, _, err := r.Key(context.Background(), credential.Want{Provider: "p"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(key)
}

func store(t *testing.T) *credential.Store {
	t.Helper()
	return credential.Open(filepath.Join(t.TempDir(), "config", "auth.json"))
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := store(t)
	if _, ok, err := s.Get("p"); ok || err != nil {
		t.Fatalf("an empty store: %v, %v", ok, err)
	}
	want := credential.Credential{Type: credential.TypeKey, Key: "k1"}
	for _, p := range []string{"p", "q"} {
		if err := s.Set(t.Context(), p, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok, err := s.Get("p"); !ok || err != nil || got.Key != "k1" {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if err := s.Remove(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Providers(); err != nil || strings.Join(all, " ") != "q" {
		t.Errorf("%v, %v", all, err)
	}
	for path, mode := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, mode)
		}
	}
}

// TestForeign: entries of other programs stay as they are, and a file that cannot
// be read is neither taken for empty nor shown.
func TestForeign(t *testing.T) {
	t.Parallel()
	s := store(t)
	if err := os.MkdirAll(filepath.Dir(s.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(s.Path(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"other":{"type":"oauth","access":"a","future":[1,2]},"odd":3}`)
	if err := s.Set(t.Context(), "p", credential.Credential{Type: credential.TypeKey, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil || fmt.Sprint(all["other"]) != "map[access:a future:[1 2] type:oauth]" || fmt.Sprint(all["odd"]) != "3" {
		t.Errorf("%s, %v", data, err)
	}
	if info, _ := os.Stat(s.Path()); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	if _, _, err := s.Get("odd"); err == nil {
		t.Error("an entry that is a number was read")
	}
	write(`{"p":{"key":"sk-secret`)
	before, _ := os.ReadFile(s.Path())
	_, _, err = s.Get("p")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), s.Path()) {
		t.Errorf("a torn file: %v", err)
	}
	if err := s.Set(t.Context(), "p", credential.Credential{}); err == nil {
		t.Error("a torn file was overwritten")
	}
	if after, _ := os.ReadFile(s.Path()); string(after) != string(before) {
		t.Error("a torn file was changed")
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A_KEY": "from env", "MINE": "from setting", "EMPTY": ""}
	s := store(t)
	r := credential.NewResolver(credential.Sources{Store: s, Getenv: func(n string) string { return env[n] }, Now: func() time.Time { return time.UnixMilli(5000) }})
	for p, c := range map[string]credential.Credential{
		"stored": {Type: credential.TypeKey, Key: "k"}, "command": {Type: credential.TypeKey, Key: "!printf ' out\n'"},
		"oauth": {Type: credential.TypeOAuth, Access: "tok", Expires: 6000}, "expired": {Type: credential.TypeOAuth, Access: "tok", Expires: 4000},
		"failing": {Type: credential.TypeKey, Key: "!echo sk-secret; echo sk-secret >&2; exit 3"},
	} {
		if err := s.Set(t.Context(), p, c); err != nil {
			t.Fatal(err)
		}
	}
	all := func(provider string) credential.Want {
		return credential.Want{Provider: provider, Setting: "$MINE", Env: []string{"EMPTY", "A_KEY"}}
	}
	given := all("stored")
	given.Given = "g"
	tests := []struct {
		want   credential.Want
		key    string
		source credential.Source
		err    string
	}{
		{given, "g", credential.FromGiven, ""},
		{all("stored"), "k", credential.FromStore, ""},
		{all("command"), "out", credential.FromStore, ""},
		{all("oauth"), "tok", credential.FromStore, ""},
		{all("expired"), "", credential.FromStore, "run muntin login expired"}, // and not the environment's
		{all("failing"), "", credential.FromStore, "its command failed: exit status 3"},
		{all("none"), "from setting", credential.FromSettings, ""},
		{credential.Want{Provider: "none", Env: []string{"EMPTY", "A_KEY"}}, "from env", credential.FromEnvironment, ""},
		{credential.Want{Provider: "none", Setting: "a$$b$!${MINE}"}, "a$b!from setting", credential.FromSettings, ""},
		{credential.Want{Provider: "none", Setting: "$NO_SUCH"}, "", credential.FromSettings, "$NO_SUCH is not set"},
		{credential.Want{Provider: "none", Setting: "${MINE"}, "", credential.FromSettings, "are missing"},
		{credential.Want{Provider: "none", Setting: "x$"}, "", credential.FromSettings, "a name is missing"},
		{credential.Want{Provider: "none", Setting: "!true"}, "", credential.FromSettings, "printed nothing"},
		{credential.Want{Provider: "none", Env: []string{"EMPTY"}}, "", credential.FromNowhere, ""},
	}
	for _, tt := range tests {
		key, source, err := r.Key(t.Context(), tt.want)
		if key != tt.key || source != tt.source || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: %q %q %v, want %q %q %q", tt.want, key, source, err, tt.key, tt.source, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows what the command printed: %v", err)
		}
	}
}

// TestCommandOnce: however many ask, a command that prints a key runs once.
func TestCommandOnce(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	r := credential.NewResolver(credential.Sources{Getenv: func(string) string { return "" }})
	w := credential.Want{Provider: "p", Setting: "!echo x >>" + count + "; echo key"}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if key, err := r.Func(w)(t.Context()); key != "key" || err != nil {
				t.Errorf("%q, %v", key, err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(count); string(data) != "x\n" {
		t.Errorf("it ran %d times, %v", strings.Count(string(data), "x"), err)
	}
}

// TestManyProcesses: fifty agents that start at once all get the key, while the
// store's lock is held and while the store is being changed.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	s := store(t)
	if err := s.Set(t.Context(), "p", credential.Credential{Type: credential.TypeKey, Key: "the-key"}); err != nil {
		t.Fatal(err)
	}
	lock, err := durable.TryLock(s.Path() + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	start := func(n int) {
		t.Helper()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), "MUNTIN_TEST_AUTH="+s.Path())
				if out, err := cmd.CombinedOutput(); string(out) != "the-key\n" {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
		all.Wait()
	}
	start(25)
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	stop, writes := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				writes <- nil
				return
			default:
			}
			if err := s.Set(context.Background(), fmt.Sprintf("q%d", i%3), credential.Credential{Type: credential.TypeKey, Key: strings.Repeat("x", i%5000)}); err != nil {
				writes <- err
				return
			}
		}
	}()
	start(25)
	close(stop)
	if err := <-writes; err != nil {
		t.Error(err)
	}
}

// TestManyWriters: no change is lost.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	s := store(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := credential.Open(s.Path()).Set(t.Context(), fmt.Sprintf("p%02d", i), credential.Credential{Type: credential.TypeKey, Key: "k"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := s.Providers(); len(got) != 20 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"$A", "${A}b", "$$", "$!", "a$", "${", "$1", "é$A"} {
		f.Add(seed)
	}
	r := credential.NewResolver(credential.Sources{Getenv: func(string) string { return "v" }})
	f.Fuzz(func(t *testing.T, value string) {
		if strings.HasPrefix(value, "!") {
			return // a command
		}
		got, err := r.Expand(t.Context(), value)
		if err == nil && !strings.Contains(value, "$") && got != value {
			t.Fatalf("%q became %q", value, got)
		}
	})
}
