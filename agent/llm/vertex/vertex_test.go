package vertex_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/vertex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// google is a token server that counts. Its tokens live for an hour.
func google(t *testing.T, status int) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Metadata-Flavor", "Google")
		if status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"secret-refresh is old"}`))
			return
		}
		_ = r.ParseForm()
		if g := r.Form.Get("grant_type"); g != "" && g != "refresh_token" && !strings.HasPrefix(r.Form.Get("assertion"), "ey") {
			t.Errorf("form %v", r.Form)
		}
		_, _ = w.Write([]byte(`{"access_token":"tok","token_type":"Bearer","expires_in":3600}`))
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

// serviceAccount writes a file of credentials with a key of its own.
func serviceAccount(t *testing.T, tokens string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return write(t, map[string]string{
		"type": "service_account", "client_email": "a@b", "private_key": string(private), "private_key_id": "1", "token_uri": tokens,
	})
}

func write(t *testing.T, fields map[string]string) string {
	t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "creds.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestServiceAccount(t *testing.T) {
	t.Parallel()
	server, asked := google(t, http.StatusOK)
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	l := vertex.NewLogin(env("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t, server.URL)), clock)
	if !l.Found() {
		t.Error("the file is not found")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if key, err := l.Key(t.Context()); key != "tok" || err != nil {
				t.Errorf("%q, %v", key, err)
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times, want once", asked.Load())
	}
	mu.Lock()
	now = now.Add(59 * time.Minute)
	mu.Unlock()
	if key, err := l.Key(t.Context()); key != "tok" || err != nil || asked.Load() != 2 {
		t.Errorf("%q, %v, asked %d times, want twice", key, err, asked.Load())
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	refused, _ := google(t, http.StatusBadRequest)
	broken, _ := google(t, http.StatusServiceUnavailable)
	for name, tt := range map[string]struct {
		file  string
		class llm.Class
	}{
		"refused": {serviceAccount(t, refused.URL), llm.ClassAuth},
		"broken":  {serviceAccount(t, broken.URL), llm.ClassRetryable},
		"nobody":  {serviceAccount(t, "http://127.0.0.1:1"), llm.ClassRetryable},
		"missing": {filepath.Join(t.TempDir(), "none"), llm.ClassOther},
		"strange": {write(t, map[string]string{"type": "strange"}), llm.ClassOther},
	} {
		l := vertex.NewLogin(env("GOOGLE_APPLICATION_CREDENTIALS", tt.file), time.Now)
		key, err := l.Key(t.Context())
		if key != "" || err == nil || llm.Classify(err) != tt.class || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v (%s), want %s", name, key, err, llm.Classify(err), tt.class)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := vertex.NewLogin(env("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t, refused.URL)), time.Now)
	if _, err := l.Key(ctx); err == nil {
		t.Error("a dead context: no error")
	}
}

// TestMachine is not parallel: the library reads the metadata server's address
// from the environment of the process.
func TestMachine(t *testing.T) {
	server, asked := google(t, http.StatusOK)
	host := strings.TrimPrefix(server.URL, "http://")
	t.Setenv("GCE_METADATA_HOST", host)
	l := vertex.NewLogin(env("GCE_METADATA_HOST", host, "HOME", t.TempDir()), time.Now)
	if key, err := l.Key(t.Context()); key != "tok" || err != nil || asked.Load() != 1 || !l.Found() {
		t.Errorf("%q, %v, asked %d times", key, err, asked.Load())
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	if got := (vertex.Place{Project: "p", Location: "eu"}).Path("anthropic", "claude@1"); got != "/v1/projects/p/locations/eu/publishers/anthropic/models/claude@1" {
		t.Error(got)
	}
	if got := (vertex.Place{}).Path("google", "gemini"); got != "/v1/publishers/google/models/gemini" {
		t.Error(got)
	}
}
