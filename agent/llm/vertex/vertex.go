// Package vertex gets access tokens for Google's Vertex AI by the user's own
// application default credentials, and knows the paths of its models. The models
// are spoken to in the dialects of their makers.
//
// Source: https://cloud.google.com/docs/authentication/application-default-credentials
package vertex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"muntin/agent/llm"
)

// ClaudeVersion is what the body of a request to Claude says in place of a header.
const ClaudeVersion = "vertex-2023-10-16"

const (
	scope = "https://www.googleapis.com/auth/cloud-platform"

	fileTimeout     = 20 * time.Second // of a token by a file of credentials
	metadataTimeout = 5 * time.Second  // of one by the machine, which may have none
	early           = 2 * time.Minute  // before a token ends, it counts as ended
)

// A Place is where models run. Without a project they are asked with an API key.
type Place struct {
	Project, Location string
}

// Path gives the path of a publisher's model, up to the verb.
func (p Place) Path(publisher, model string) string {
	path := "/v1"
	if p.Project != "" {
		path += "/projects/" + url.PathEscape(p.Project) + "/locations/" + url.PathEscape(p.Location)
	}
	return path + "/publishers/" + url.PathEscape(publisher) + "/models/" + url.PathEscape(model)
}

// A Login gives access tokens. It keeps one until shortly before it ends. It may be
// used from several goroutines.
type Login struct {
	getenv func(string) string
	now    func() time.Time
	turn   chan struct{} // holds one: whoever has it may look at token
	token  *oauth2.Token
}

// NewLogin makes a login. Nothing is read before the first token.
func NewLogin(getenv func(string) string, now func() time.Time) *Login {
	return &Login{getenv: getenv, now: now, turn: make(chan struct{}, 1)}
}

// file is where the credentials are, whether or not they are there.
func (l *Login) file() string {
	if path := l.getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		return path
	}
	dir := l.getenv("CLOUDSDK_CONFIG")
	if dir == "" {
		dir = filepath.Join(l.getenv("HOME"), ".config", "gcloud")
	}
	return filepath.Join(dir, "application_default_credentials.json")
}

// Found tells whether there is a login that needs no network to be seen.
func (l *Login) Found() bool {
	if l.getenv("GCE_METADATA_HOST") != "" {
		return true
	}
	_, err := os.Stat(l.file())
	return err == nil
}

// Key gives an access token. It is an llm.KeyFunc.
func (l *Login) Key(ctx context.Context) (string, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if l.token != nil && (l.token.Expiry.IsZero() || l.now().Add(early).Before(l.token.Expiry)) {
		return l.token.AccessToken, nil
	}
	token, err := l.fetch(ctx)
	if err != nil {
		return "", explain(err)
	}
	l.token = token
	return token.AccessToken, nil
}

func (l *Login) fetch(ctx context.Context) (*oauth2.Token, error) {
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	defer client.CloseIdleConnections()
	data, err := os.ReadFile(l.file())
	switch {
	case err == nil:
		ctx, cancel := context.WithTimeout(ctx, fileTimeout)
		defer cancel()
		return byFile(context.WithValue(ctx, oauth2.HTTPClient, client), data)
	case !errors.Is(err, fs.ErrNotExist) || l.getenv("GOOGLE_APPLICATION_CREDENTIALS") != "":
		return nil, fmt.Errorf("reading the credentials of Google: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	return l.byMachine(ctx, client)
}

func byFile(ctx context.Context, data []byte) (*oauth2.Token, error) {
	var head struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, errors.New("the credentials of Google are no JSON object")
	}
	found, err := google.CredentialsFromJSONWithType(ctx, data, head.Type, scope)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of Google: %w", err)
	}
	return found.TokenSource.Token()
}

// byMachine asks the metadata server of a machine at Google.
func (l *Login) byMachine(ctx context.Context, client *http.Client) (*oauth2.Token, error) {
	text, err := metadata.NewClient(client).GetWithContext(ctx, "instance/service-accounts/default/token?scopes="+url.QueryEscape(scope))
	if err != nil {
		return nil, &llm.Error{
			Class:   llm.ClassAuth,
			Message: "there is no login of Google: run gcloud auth application-default login, or set $GOOGLE_APPLICATION_CREDENTIALS or $GOOGLE_CLOUD_API_KEY",
		}
	}
	var got struct {
		Access  string `json:"access_token"`
		Expires int    `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Access == "" {
		return nil, errors.New("the metadata server's answer has no token")
	}
	return &oauth2.Token{AccessToken: got.Access, Expiry: l.now().Add(time.Duration(got.Expires) * time.Second)}, nil
}

// explain gives an error a class. It shows nothing of an answer but what names the failure.
func explain(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil {
		class := llm.ClassAuth
		if status := answered.Response.StatusCode; status >= 500 || status == http.StatusTooManyRequests {
			class = llm.ClassRetryable
		}
		return &llm.Error{Class: class, Message: fmt.Sprintf(
			"Google refused a token: HTTP %d %s; run gcloud auth application-default login", answered.Response.StatusCode, answered.ErrorCode)}
	}
	if class := llm.Classify(err); class == llm.ClassRetryable || class == llm.ClassAborted {
		return &llm.Error{Class: llm.ClassRetryable, Message: "asking Google for a token: the connection failed", Err: err}
	}
	return err
}
