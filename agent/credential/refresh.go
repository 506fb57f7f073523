package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"muntin/agent/llm"
	"muntin/internal/durable"
)

const (
	// soon is how long before its end a login is renewed.
	soon = 5 * time.Minute
	// renewTimeout bounds a renewal, and the wait for one of another process.
	renewTimeout = 20 * time.Second
)

// Renewable tells whether a login can be renewed without its person.
func (c Credential) Renewable() bool {
	return c.Type == TypeOAuth && c.Refresh != "" && c.TokenURL != "" && c.ClientID != ""
}

// Ended tells whether a login has ended at a time.
func (c Credential) Ended(at time.Time) bool {
	return c.Type == TypeOAuth && c.Expires > 0 && at.UnixMilli() >= c.Expires
}

// access gives the access token of a login, renewed where it ends soon. One that
// cannot be renewed now is used while it lasts.
func (r *Resolver) access(ctx context.Context, provider string, c Credential) (string, error) {
	now := r.from.Now()
	if !c.Ended(now.Add(soon)) {
		return c.Access, nil
	}
	if !c.Renewable() || r.from.Renew == nil {
		if !c.Ended(now) {
			return c.Access, nil
		}
		return "", &llm.Error{Class: llm.ClassAuth, Message: fmt.Sprintf("the login of %s has expired; run muntin login %s", provider, provider)}
	}
	renewed, err := r.renewed(ctx, provider)
	switch {
	case err == nil:
		return renewed.Access, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case !c.Ended(now):
		return c.Access, nil
	}
	class := llm.Classify(err)
	text := fmt.Sprintf("renewing the login of %s: %s", provider, err)
	if class != llm.ClassRetryable {
		class, text = llm.ClassAuth, text+"; run muntin login "+provider
	}
	return "", &llm.Error{Class: class, Message: text, Err: err}
}

// renewed waits for a renewal, or until ctx ends. The renewal itself goes on then:
// the server may have changed the refresh token already, and a lost one would end
// the login.
func (r *Resolver) renewed(ctx context.Context, provider string) (Credential, error) {
	type result struct {
		c   Credential
		err error
	}
	done := make(chan result, 1)
	background := context.WithoutCancel(ctx)
	r.from.Go(func() {
		c, err := r.renew(background, provider)
		done <- result{c, err}
	})
	select {
	case got := <-done:
		return got.c, got.err
	case <-ctx.Done():
		return Credential{}, context.Cause(ctx)
	}
}

// renew renews a login once, however many processes want it: whoever had to wait
// finds it renewed. Readers of the store do not wait.
func (r *Resolver) renew(ctx context.Context, provider string) (c Credential, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	sum := sha256.Sum256([]byte(provider))
	dir := filepath.Dir(r.from.Store.Path())
	lock, err := durable.Lock(ctx, filepath.Join(dir, "login-"+hex.EncodeToString(sum[:6])+".lock"))
	if err != nil {
		return c, &llm.Error{Class: llm.ClassRetryable, Message: "another process has been renewing it for " + renewTimeout.String(), Err: err}
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	c, ok, err := r.from.Store.Get(provider)
	switch {
	case err != nil:
		return c, err
	case !ok || !c.Renewable():
		return c, errors.New("it was removed just now")
	case !c.Ended(r.from.Now().Add(soon)):
		return c, nil
	}
	if c, err = r.from.Renew(ctx, c); err != nil {
		return c, err
	}
	// What the server gave is stored even where the time is up.
	return c, r.from.Store.Set(context.WithoutCancel(ctx), provider, c)
}
