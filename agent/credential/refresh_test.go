package credential_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muntin/agent/credential"
	"muntin/agent/llm"
)

// ending is a login that ends after so long.
func ending(in time.Duration) credential.Credential {
	return credential.Credential{
		Type: credential.TypeOAuth, Access: "old", Refresh: "r1", Expires: time.Now().Add(in).UnixMilli(), TokenURL: "https://x.test", ClientID: "mine",
	}
}

// renewFile is a renewal that writes a line for each time it is asked.
func renewFile(path string) func(context.Context, credential.Credential) (credential.Credential, error) {
	return func(_ context.Context, c credential.Credential) (credential.Credential, error) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return c, err
		}
		_, err = f.WriteString("asked with " + c.Refresh + "\n")
		c.Access, c.Refresh, c.Expires = "new", "r2", time.Now().Add(time.Hour).UnixMilli()
		return c, errors.Join(err, f.Close())
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	refused := &llm.Error{Class: llm.ClassAuth, Message: "the server says no"}
	away := &llm.Error{Class: llm.ClassRetryable, Message: "the server is away"}
	own := ending(-time.Minute)
	own.ClientID = "" // of another program
	tests := map[string]struct {
		c     credential.Credential
		err   error
		want  string
		says  string
		class llm.Class
		asked int32
	}{
		"fresh":               {ending(time.Hour), nil, "old", "", "", 0},
		"soon":                {ending(time.Minute), nil, "new", "", "", 1},
		"over":                {ending(-time.Minute), nil, "new", "", "", 1},
		"soon, not now":       {ending(time.Minute), away, "old", "", "", 1},
		"over, not now":       {ending(-time.Minute), away, "", "away", llm.ClassRetryable, 1},
		"refused":             {ending(-time.Minute), refused, "", "run muntin login p", llm.ClassAuth, 1},
		"of another program":  {own, nil, "", "run muntin login p", llm.ClassAuth, 0},
		"never ends":          {credential.Credential{Type: credential.TypeOAuth, Access: "old"}, nil, "old", "", "", 0},
		"an unknown failure":  {ending(-time.Minute), errors.New("strange"), "", "run muntin login p", llm.ClassAuth, 1},
		"refused, still good": {ending(time.Minute), refused, "old", "", "", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			if err := s.Set(t.Context(), "p", tt.c); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			r := credential.NewResolver(credential.Sources{Store: s, Getenv: func(string) string { return "" }, Renew: func(_ context.Context, c credential.Credential) (credential.Credential, error) {
				asked.Add(1)
				if tt.err != nil {
					return c, tt.err
				}
				c.Access, c.Refresh, c.Expires = "new", "r2", time.Now().Add(time.Hour).UnixMilli()
				return c, nil
			}})
			key, _, err := r.Key(t.Context(), credential.Want{Provider: "p", Env: []string{"NONE"}})
			if key != tt.want || (err == nil) != (tt.says == "") || asked.Load() != tt.asked {
				t.Fatalf("%q, %v, asked %d times", key, err, asked.Load())
			}
			if err != nil && (!strings.Contains(err.Error(), tt.says) || llm.Classify(err) != tt.class) {
				t.Errorf("%v (%s), want %q, %s", err, llm.Classify(err), tt.says, tt.class)
			}
			got, ok, err := s.Get("p")
			if err != nil || !ok || tt.want == "new" && got.Refresh != "r2" || tt.want != "new" && got.Refresh != tt.c.Refresh {
				t.Errorf("stored: %+v, %v, %v", got, ok, err)
			}
		})
	}
}

// TestRenewalOutlivesItsCaller: the caller stops at once, what the server gave is
// stored, and nobody who reads waits.
func TestRenewalOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := store(t)
	for name, c := range map[string]credential.Credential{"p": ending(-time.Minute), "q": {Type: credential.TypeKey, Key: "k"}} {
		if err := s.Set(t.Context(), name, c); err != nil {
			t.Fatal(err)
		}
	}
	begun, answer := make(chan struct{}), make(chan struct{})
	var background sync.WaitGroup
	r := credential.NewResolver(credential.Sources{Store: s, Go: background.Go, Renew: func(ctx context.Context, c credential.Credential) (credential.Credential, error) {
		close(begun)
		<-answer
		c.Access, c.Refresh, c.Expires = "new", "r2", time.Now().Add(time.Hour).UnixMilli()
		return c, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.Key(ctx, credential.Want{Provider: "p"})
		ended <- err
	}()
	<-begun
	if key, _, err := r.Key(t.Context(), credential.Want{Provider: "q"}); key != "k" || err != nil {
		t.Errorf("another key meanwhile: %q, %v", key, err)
	}
	if err := s.Set(t.Context(), "z", credential.Credential{Type: credential.TypeKey, Key: "k"}); err != nil {
		t.Errorf("storing meanwhile: %v", err)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the caller got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the caller waits for the renewal")
	}
	close(answer)
	background.Wait()
	if got, _, err := s.Get("p"); err != nil || got.Access != "new" || got.Refresh != "r2" {
		t.Errorf("stored: %+v, %v", got, err)
	}
}

// TestManyProcessesRenewOnce: each refresh token is good for one use.
func TestManyProcessesRenewOnce(t *testing.T) {
	t.Parallel()
	s := store(t)
	if err := s.Set(t.Context(), "p", ending(time.Second)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "asked")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "MUNTIN_TEST_AUTH="+s.Path(), "MUNTIN_TEST_RENEW="+log)
			if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "new" {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	all.Wait()
	if text, err := os.ReadFile(log); err != nil || string(text) != "asked with r1\n" {
		t.Errorf("%q, %v, want one renewal", text, err)
	}
}
