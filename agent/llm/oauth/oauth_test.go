package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"muntin/agent/llm"
	"muntin/agent/llm/oauth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get is the browser.
func get(t *testing.T, c *http.Client, address string) int {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestPKCE(t *testing.T) {
	t.Parallel()
	challenge := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got map[string]string
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256([]byte(got["code_verifier"]))
		want := <-challenge
		if got["code"] != "good" || base64.RawURLEncoding.EncodeToString(sum[:]) != want {
			http.Error(w, `{"error":"sk-secret"}`, http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `{"key":"sk-or-1"}`)
	}))
	t.Cleanup(server.Close)
	browser := client(t)
	login := func(code string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return oauth.PKCE{AuthURL: "https://auth.test/page", KeyURL: server.URL, Client: client(t)}.Login(ctx, func(address string) {
			u, err := url.Parse(address)
			if err != nil || u.Host != "auth.test" || u.Query().Get("code_challenge_method") != "S256" {
				t.Errorf("address %s, %v", address, err)
			}
			challenge <- u.Query().Get("code_challenge")
			back := strings.Replace(u.Query().Get("callback_url"), "localhost", "127.0.0.1", 1)
			go func() {
				b, _ := url.Parse(back)
				if status := get(t, browser, "http://"+b.Host+"/?code=stolen"); status != 404 {
					t.Errorf("another path: %d", status)
				}
				get(t, browser, back+"?"+code)
			}()
		})
	}
	if key, err := login("code=good"); key != "sk-or-1" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
	if key, err := login("code=bad"); key != "" || err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "403") {
		t.Errorf("%q, %v", key, err)
	}
	if key, err := login("error=denied"); key != "" || err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%q, %v", key, err)
	}
}

func TestPKCEIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := (oauth.PKCE{AuthURL: "https://auth.test", Client: client(t)}).Login(ctx, func(string) { cancel() }); err == nil {
		t.Error("no error")
	}
}

func TestDevice(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answers []string
		want    oauth.Token
		err     string
	}{
		"at once":  {[]string{`{"access_token":"tok"}`}, oauth.Token{Access: "tok"}, ""},
		"later":    {[]string{`{"error":"authorization_pending"}`, `{"error":"slow_down","interval":1}`, `{"access_token":"tok","refresh_token":"r","expires_in":60}`}, oauth.Token{Access: "tok", Refresh: "r", Expires: 60 * time.Millisecond}, ""},
		"refused":  {[]string{`{"error":"access_denied"}`}, oauth.Token{}, "refused"},
		"expired":  {[]string{`{"error":"expired_token"}`}, oauth.Token{}, "expired"},
		"too long": {[]string{`{"error":"authorization_pending"}`, `{"error":"authorization_pending"}`, `{"error":"authorization_pending"}`}, oauth.Token{}, "no answer"},
		"unknown":  {[]string{`{"error":"bad_client"}`}, oauth.Token{}, "bad_client"},
		"no JSON":  {[]string{`<html>`}, oauth.Token{}, "not of the expected form"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, context.DeadlineExceeded)
			defer cancel()
			ctx, end := context.WithCancelCause(ctx)
			defer end(nil)
			polls := make(chan string, len(tt.answers))
			for _, a := range tt.answers {
				polls <- a
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := r.ParseForm(); err != nil || r.Form.Get("client_id") != "mine" {
					t.Errorf("form %v, %v", r.Form, err)
				}
				if r.URL.Path == "/code" {
					_, _ = io.WriteString(w, `{"device_code":"d","user_code":"AB-CD","verification_uri":"https://v.test","interval":1}`)
					return
				}
				if r.Form.Get("device_code") != "d" {
					t.Errorf("form %v", r.Form)
				}
				select {
				case a := <-polls:
					if strings.Contains(a, "error") {
						w.WriteHeader(http.StatusBadRequest)
					}
					_, _ = io.WriteString(w, a)
				default:
					end(io.EOF)
					_, _ = io.WriteString(w, `{"error":"authorization_pending"}`)
				}
			}))
			defer server.Close()
			shown := ""
			d := oauth.Device{CodeURL: server.URL + "/code", TokenURL: server.URL + "/token", ClientID: "mine", Client: client(t), Second: time.Millisecond}
			got, err := d.Login(ctx, func(page, code string) { shown = page + " " + code })
			if got != tt.want || shown != "https://v.test AB-CD" || (err == nil) != (tt.err == "") {
				t.Errorf("%+v, %v, shown %q", got, err, shown)
			}
			if err != nil && tt.err != "no answer" && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
	if _, err := (oauth.GitHub("")).Login(t.Context(), nil); err == nil {
		t.Error("without a client id: no error")
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		answer string
		want   oauth.Token
		class  llm.Class
	}{
		"new token":         {200, `{"access_token":"tok","refresh_token":"r2","expires_in":60}`, oauth.Token{Access: "tok", Refresh: "r2", Expires: time.Minute}, ""},
		"same refresh":      {200, `{"access_token":"tok"}`, oauth.Token{Access: "tok", Refresh: "r1"}, ""},
		"ended":             {400, `{"error":"invalid_grant","error_description":"sk-secret"}`, oauth.Token{}, llm.ClassAuth},
		"ended, in its way": {200, `{"error":"bad_refresh_token"}`, oauth.Token{}, llm.ClassAuth},
		"page":              {404, `<html>sk-secret`, oauth.Token{}, llm.ClassAuth},
		"away":              {503, ``, oauth.Token{}, llm.ClassRetryable},
		"too often":         {429, ``, oauth.Token{}, llm.ClassRetryable},
	}
	for name, tt := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil || r.Form.Get("client_id") != "mine" || r.Form.Get("refresh_token") != "r1" || r.Form.Get("grant_type") != "refresh_token" || r.UserAgent() != "muntin" {
				t.Errorf("%s: form %v, %v", name, r.Form, err)
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.answer)
		}))
		got, err := oauth.Refresh{TokenURL: server.URL, ClientID: "mine", Client: client(t)}.Token(t.Context(), "r1")
		server.Close()
		if got != tt.want || (err == nil) != (tt.class == "") || err != nil && (llm.Classify(err) != tt.class || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %+v, %v (%s)", name, got, err, llm.Classify(err))
		}
	}
	if _, err := (oauth.Refresh{TokenURL: "http://127.0.0.1:1", Client: client(t)}).Token(t.Context(), "r1"); llm.Classify(err) != llm.ClassRetryable {
		t.Errorf("nobody there: %v", err)
	}
}
