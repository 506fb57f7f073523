package llm

import (
	"context"
	"time"
)

// A KeyFunc gives the key for one request. It may block until ctx ends, and may be
// called from several goroutines. An error that is no *Error counts as ClassAuth.
type KeyFunc func(ctx context.Context) (string, error)

// StaticKey is a KeyFunc for a key that is known. No key gives nil.
func StaticKey(key string) KeyFunc {
	if key == "" {
		return nil
	}
	return func(context.Context) (string, error) { return key, nil }
}

// An Endpoint says where the requests of a client go, and with what. All may be
// left out.
type Endpoint struct {
	Provider  string            // the name in messages; default: that of the dialect
	BaseURL   string            // up to where the dialect's own paths begin; its query is kept
	Key       KeyFunc           // nil: none is sent
	KeyHeader string            // default: that of the dialect; Authorization takes the key as a bearer token
	Headers   map[string]string // sent with each request, over the defaults; "" takes one away
	Model     Model             // what is known of the model
	WireName  string            // what the server calls the model; "": what the request calls it
	Deadlines Deadlines
	Now       func() time.Time // for timestamps; default time.Now
}
