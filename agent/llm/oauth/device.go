package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Device is a login on another device, by a code that the person types there
// (RFC 8628).
//
// Source: https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow
type Device struct {
	CodeURL  string
	TokenURL string
	ClientID string // of an app that the user has registered
	Scope    string
	Client   *http.Client  // default: one of its own
	Second   time.Duration // the unit of the server's intervals; default a second
}

// GitHub is the login of github.com.
func GitHub(clientID string) Device {
	return Device{
		CodeURL: "https://github.com/login/device/code", TokenURL: "https://github.com/login/oauth/access_token",
		ClientID: clientID,
	}
}

// A Token is what a login gave.
type Token struct {
	Access  string
	Refresh string
	Expires time.Duration // from now; 0: never
}

// Login waits until the person has typed the code, and gives the token. show is
// called once with the page to open and the code.
func (d Device) Login(ctx context.Context, show func(page, code string)) (Token, error) {
	if d.ClientID == "" {
		return Token{}, errors.New("no client id is given")
	}
	if d.Client == nil {
		d.Client = &http.Client{}
		defer d.Client.CloseIdleConnections()
	}
	if d.Second == 0 {
		d.Second = time.Second
	}
	var begun struct {
		Device   string `json:"device_code"`
		User     string `json:"user_code"`
		Page     string `json:"verification_uri"`
		Expires  int    `json:"expires_in"`
		Interval int    `json:"interval"`
	}
	r, err := d.post(ctx, d.CodeURL, url.Values{"client_id": {d.ClientID}, "scope": {d.Scope}})
	if err == nil {
		err = r.decode(&begun)
	}
	if err == nil && (begun.Device == "" || begun.User == "" || begun.Page == "") {
		err = errors.New("the server's answer has no code")
	}
	if err != nil {
		return Token{}, fmt.Errorf("asking for a code: %w", err)
	}
	if begun.Expires > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(begun.Expires)*d.Second, errors.New("the code has expired"))
		defer cancel()
	}
	show(begun.Page, begun.User)
	return d.poll(ctx, begun.Device, max(begun.Interval, 1))
}

func (d Device) poll(ctx context.Context, device string, interval int) (Token, error) {
	form := url.Values{
		"client_id": {d.ClientID}, "device_code": {device}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
	}
	for {
		if err := wait(ctx, time.Duration(interval)*d.Second); err != nil {
			return Token{}, fmt.Errorf("waiting for the login: %w", err)
		}
		var got struct {
			Access   string `json:"access_token"`
			Refresh  string `json:"refresh_token"`
			Expires  int    `json:"expires_in"`
			Error    string `json:"error"`
			Interval int    `json:"interval"`
		}
		r, err := d.post(ctx, d.TokenURL, form)
		if err == nil && r.status/100 == 4 {
			r.status = http.StatusOK // RFC 8628 sends its errors with 400, GitHub with 200
		}
		if err == nil {
			err = r.decode(&got)
		}
		switch {
		case err != nil:
			return Token{}, fmt.Errorf("asking for the token: %w", err)
		case got.Access != "":
			return Token{Access: got.Access, Refresh: got.Refresh, Expires: time.Duration(got.Expires) * d.Second}, nil
		case got.Error == "authorization_pending":
		case got.Error == "slow_down":
			interval = max(interval+5, got.Interval)
		case got.Error == "expired_token":
			return Token{}, errors.New("the code has expired")
		case got.Error == "access_denied":
			return Token{}, errors.New("the login was refused")
		default:
			return Token{}, fmt.Errorf("asking for the token: the server says %q", got.Error)
		}
	}
}

func (d Device) post(ctx context.Context, address string, form url.Values) (reply, error) {
	return send(ctx, d.Client, post{address, "application/x-www-form-urlencoded", form.Encode()})
}
