package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"muntin/orchestrator"
	"muntin/recipes"
)

// A Message is the JSON that a webhook's address gets by POST. The field text is
// what chat services show.
type Message struct {
	Version int           `json:"version"` // 1
	Time    time.Time     `json:"time"`
	Run     string        `json:"run"`
	Repo    string        `json:"repo"` // the folder's path
	Event   recipes.Event `json:"event"`
	Agent   string        `json:"agent,omitempty"`
	Task    string        `json:"task,omitempty"`
	Text    string        `json:"text"`
}

// messageVersion is the version of Message.
const messageVersion = 1

// post sends a notice to an address. The address may have a secret in it, so that
// no error tells it.
func (n *Notifier) post(ctx context.Context, to string, e orchestrator.Notice) error {
	body, err := json.Marshal(Message{
		Version: messageVersion, Time: e.Time.UTC(), Run: n.Run.Name, Repo: n.Run.Repo,
		Event: e.Event, Agent: e.Agent, Task: e.Task, Text: e.Text,
	})
	if err != nil {
		return fmt.Errorf("writing the message: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be read")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "muntin")
	res, err := n.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return fmt.Errorf("posting to %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, keptOutput)) // so that the connection can be used again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("posting to %s: %s", req.URL.Host, res.Status)
	}
	return nil
}
