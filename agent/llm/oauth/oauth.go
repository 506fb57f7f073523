// Package oauth gets a key for muntin from providers that offer logins to any
// program: OpenRouter by PKCE, GitHub by its device flow. It never takes the
// identity of another program: where a client id is needed, the user gives one of
// their own.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// a reply is the body of an answer, with its status.
type reply struct {
	status int
	body   []byte
}

// requestTimeout bounds one request of a login.
const requestTimeout = 30 * time.Second

// a post is one request of a login.
type post struct {
	url, kind, body string
}

// send sends a request and reads its whole answer.
func send(ctx context.Context, client *http.Client, p post) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(p.body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", p.kind)
	r.Header.Set("User-Agent", "muntin")
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	const limit = 1 << 20
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	return reply{status: resp.StatusCode, body: data}, err
}

// decode reads the answer. Its error shows nothing of the body, which may be a key.
func (r reply) decode(into any) error {
	if r.status/100 != 2 {
		return fmt.Errorf("the server answered with HTTP %d", r.status)
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return errors.New("the server's answer is not of the expected form")
	}
	return nil
}

// wait ends after d or with the context.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
