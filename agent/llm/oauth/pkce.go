package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// PKCE is a login in a browser that comes back to a server on loopback.
//
// Source: https://openrouter.ai/docs/use-cases/oauth-pkce
type PKCE struct {
	AuthURL string       // the page that the person opens
	KeyURL  string       // where the code is exchanged for a key
	Client  *http.Client // default: one of its own
}

// OpenRouter is the login of openrouter.ai.
func OpenRouter() PKCE {
	return PKCE{AuthURL: "https://openrouter.ai/auth", KeyURL: "https://openrouter.ai/api/v1/auth/keys"}
}

// Login waits until the person has agreed in a browser, and gives the key. show is
// called once with the address to open.
func (p PKCE) Login(ctx context.Context, show func(address string)) (string, error) {
	if p.Client == nil {
		p.Client = &http.Client{}
		defer p.Client.CloseIdleConnections()
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for the browser: %w", err)
	}
	// The secret path keeps other pages and programs from handing in a code of theirs.
	secret, verifier := rand.Text(), rand.Text()+rand.Text()
	back := &callback{path: "/" + secret, code: make(chan string, 1)}
	server := &http.Server{Handler: back, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with the error that it was closed
	}()
	defer func() {
		_ = server.Close()
		<-served
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"callback_url":          {fmt.Sprintf("http://localhost:%d%s", port, back.path)},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"},
	}
	show(p.AuthURL + "?" + query.Encode())
	select {
	case code := <-back.code:
		if code == "" {
			return "", errors.New("the login was refused in the browser")
		}
		return p.exchange(ctx, code, verifier)
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	}
}

func (p PKCE) exchange(ctx context.Context, code, verifier string) (string, error) {
	body, err := json.Marshal(map[string]string{"code": code, "code_verifier": verifier, "code_challenge_method": "S256"})
	if err != nil {
		return "", err
	}
	r, err := send(ctx, p.Client, post{p.KeyURL, "application/json", string(body)})
	var got struct {
		Key string `json:"key"`
	}
	if err == nil {
		err = r.decode(&got)
	}
	if err == nil && got.Key == "" {
		err = errors.New("the server's answer has no key")
	}
	if err != nil {
		return "", fmt.Errorf("exchanging the login for a key: %w", err)
	}
	return got.Key, nil
}

// a callback takes the browser's return.
type callback struct {
	path string
	code chan string // takes the first
}

// ServeHTTP implements http.Handler.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte(c.path)) != 1 {
		http.NotFound(w, r)
		return
	}
	select {
	case c.code <- r.URL.Query().Get("code"):
	default: // a second return changes nothing
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("muntin has the answer. You can close this page.\n")) // the browser may be gone
}
