package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"muntin/agent/llm"
)

// A Refresh gets a new token for one that ends (RFC 6749, section 6).
type Refresh struct {
	TokenURL string
	ClientID string       // of the app that the login was made with
	Client   *http.Client // default: one of its own
}

// Token exchanges a refresh token. Where the server gives no new refresh token, the
// old one stays good. The error is an *llm.Error: ClassAuth when the login has ended,
// ClassRetryable when the server could not be asked. It shows nothing of an answer
// but the name of the failure.
func (r Refresh) Token(ctx context.Context, refresh string) (Token, error) {
	if r.Client == nil {
		r.Client = &http.Client{}
		defer r.Client.CloseIdleConnections()
	}
	got, err := send(ctx, r.Client, post{r.TokenURL, "application/x-www-form-urlencoded", url.Values{
		"client_id": {r.ClientID}, "grant_type": {"refresh_token"}, "refresh_token": {refresh},
	}.Encode()})
	if err != nil {
		return Token{}, &llm.Error{Class: llm.ClassRetryable, Message: "the server of the login could not be asked", Err: err}
	}
	if got.status >= http.StatusInternalServerError || got.status == http.StatusTooManyRequests {
		return Token{}, &llm.Error{Class: llm.ClassRetryable, Message: fmt.Sprintf("the server of the login answered with HTTP %d", got.status)}
	}
	status := got.status
	if status/100 == 4 {
		got.status = http.StatusOK // its body names the failure
	}
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int    `json:"expires_in"`
		Error   string `json:"error"`
	}
	if err := got.decode(&answer); err != nil {
		return Token{}, &llm.Error{Class: llm.ClassAuth, Message: fmt.Sprintf("the login was not renewed: HTTP %d", status)}
	}
	if answer.Access == "" || answer.Error != "" {
		return Token{}, &llm.Error{Class: llm.ClassAuth, Message: fmt.Sprintf("the login was not renewed: the server says %q", answer.Error)}
	}
	if answer.Refresh == "" {
		answer.Refresh = refresh
	}
	return Token{Access: answer.Access, Refresh: answer.Refresh, Expires: time.Duration(answer.Expires) * time.Second}, nil
}
