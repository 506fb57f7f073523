// Package bedrock speaks the Converse API of Amazon Bedrock, which is the same for
// all models there, as its event stream. It makes one request for one response and
// never retries.
//
// Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"muntin/agent/llm"
	"muntin/agent/llm/internal/wire"
)

// API is what messages of this dialect carry as their API.
const API = "bedrock-converse-stream"

// defaultRegion is where requests go when nobody names a region.
const defaultRegion = "us-east-1"

// Options are what a Client is made of. All may be left out. The compat object of
// Endpoint.Model is read as Quirks. Without a key in the endpoint, which would be an
// API key of Bedrock, requests are signed.
type Options struct {
	llm.Endpoint
	HTTPClient *http.Client // default: one of its own, with the proxy of the environment
	Region     string       // before the base URL's; the ARN of a model comes before both

	// Credentials give what requests are signed with. They are asked for each
	// request. nil: requests without a key go out unsigned.
	Credentials func() (Credentials, error)
}

// A Client is an llm.Provider.
type Client struct {
	wire   *wire.Client
	o      Options
	quirks Quirks
	wrong  error // of the quirks
}

// New makes a client. It does not look at the address or the key; what is wrong
// with them comes as the error of the first stream.
func New(o Options) *Client {
	o.Region, o.BaseURL = place(o)
	c := &Client{o: o}
	c.wire = wire.NewClient(o.Endpoint, o.HTTPClient, wire.Dialect{
		API: API, Provider: "amazon-bedrock", BaseURL: o.BaseURL, KeyHeader: "Authorization",
		Accept: "application/vnd.amazon.eventstream", Events: newEvents, Authorize: c.sign,
	})
	c.quirks, c.wrong = parseQuirks(o.Model)
	return c
}

// CloseIdleConnections closes connections that no stream uses.
func (c *Client) CloseIdleConnections() { c.wire.CloseIdleConnections() }

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq[llm.Event] {
	return c.wire.Stream(ctx, wire.Ask{
		Model: req.Model,
		Path:  "/model/" + escape(req.Model) + "/converse-stream",
		Encode: func() ([]byte, error) {
			if c.wrong != nil {
				return nil, c.wrong
			}
			return c.encode(req)
		},
		Decode: func(a *wire.Answer) wire.Decoder { return newDecoder(a).event },
	})
}

// escape makes one segment of a path, as the official clients do: with colons and
// the slashes of ARNs escaped.
func escape(model string) string { return strings.ReplaceAll(url.PathEscape(model), ":", "%3A") }

// place gives the region and the address. An address of Amazon's own is that of the
// region; another one stays as it is.
func place(o Options) (region, base string) {
	own := regexp.MustCompile(`^https://bedrock-runtime(-fips)?\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?/?$`).FindStringSubmatch(o.BaseURL)
	arn := regexp.MustCompile(`^arn:aws[a-z-]*:bedrock:([a-z0-9-]+):`).FindStringSubmatch(o.Model.ID)
	region = o.Region
	switch {
	case arn != nil:
		region = arn[1]
	case own != nil && (region == "" || elsewhere(o.Model.ID, region)):
		region = own[2]
	case region == "":
		region = defaultRegion
	}
	if own == nil && o.BaseURL != "" {
		return region, o.BaseURL
	}
	fips, tld := "", ""
	if own != nil {
		fips = own[1]
	}
	if strings.HasPrefix(region, "cn-") {
		tld = ".cn"
	}
	return region, "https://bedrock-runtime" + fips + "." + region + ".amazonaws.com" + tld
}

// elsewhere tells whether a model is one for another part of the world than a
// region: the id of such a model begins with where it may run.
func elsewhere(model, region string) bool {
	for _, part := range []string{"us", "eu"} {
		if strings.HasPrefix(model, part+".") {
			return !strings.HasPrefix(region, part+"-")
		}
	}
	return false
}

// sign signs a request that has no key, by version 4 of Amazon's signatures.
func (c *Client) sign(r *http.Request, body []byte) error {
	if r.Header.Get("Authorization") != "" || c.o.Credentials == nil {
		return nil
	}
	found, err := c.o.Credentials()
	if err != nil {
		return &llm.Error{Class: llm.ClassAuth, Message: "signing the request: " + err.Error(), Err: err}
	}
	sum := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: found.ID, SecretAccessKey: found.Secret, SessionToken: found.Session}
	err = v4.NewSigner().SignHTTP(r.Context(), who, r, hex.EncodeToString(sum[:]), "bedrock", c.o.Region, c.wire.Endpoint().Now())
	if err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	return nil
}

// Quirks say how a model differs. They are known for the families of models; the
// compat object of the model says more.
type Quirks struct {
	Cache     bool   `json:"promptCache"`        // takes cache points
	LongCache bool   `json:"longPromptCache"`    // the same, for an hour
	Signed    bool   `json:"thinkingSignatures"` // takes its thinking back with signatures
	Thinking  string `json:"thinkingFormat"`     // budget, adaptive, effort, nested-effort, nova; "": it cannot be asked

	Extra json.RawMessage `json:"extraBody"` // more fields of the body
}

// a family is what holds for models whose id or name has a text in it.
type family struct {
	text   string
	quirks Quirks
}

// families: the first that fits counts.
func families() []family {
	claude := Quirks{Cache: true, LongCache: true, Signed: true, Thinking: "budget"}
	adaptive := claude
	adaptive.Thinking = "adaptive"
	return []family{
		{"opus-4-6", adaptive},
		{"opus-4-7", adaptive},
		{"opus-4-8", adaptive},
		{"opus-5", adaptive},
		{"sonnet-4-6", adaptive},
		{"sonnet-5", adaptive},
		{"haiku-5", adaptive},
		{"fable-5", adaptive},
		{"claude-3-haiku", Quirks{Signed: true}},
		{"claude-3-sonnet", Quirks{Signed: true}},
		{"claude-3-opus", Quirks{Signed: true}},
		{"claude-3-5-sonnet", Quirks{Signed: true}},
		{"claude", claude},
		{"gpt-oss", Quirks{Thinking: "effort"}},
		{"gpt-", Quirks{Thinking: "nested-effort"}},
		{"nova-2", Quirks{Thinking: "nova"}},
	}
}

func parseQuirks(m llm.Model) (Quirks, error) {
	q := Quirks{}
	text := strings.ToLower(strings.NewReplacer(" ", "-", ".", "-", "_", "-", ":", "-").Replace(m.ID + " " + m.Name))
	for _, f := range families() {
		if strings.Contains(text, f.text) {
			q = f.quirks
			break
		}
	}
	return q, wire.ReadCompat(m.Compat, &q)
}
