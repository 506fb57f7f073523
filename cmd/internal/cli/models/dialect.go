package models

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"muntin/agent/llm"
	"muntin/agent/llm/anthropic"
	"muntin/agent/llm/bedrock"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/google"
	"muntin/agent/llm/openai"
	"muntin/agent/llm/responses"
	"muntin/agent/llm/vertex"
	"muntin/cmd/internal/cli/app"
)

// The providers that are clouds: they have logins of their own.
const (
	azureID   = "azure"
	vertexID  = "google-vertex"
	bedrockID = "amazon-bedrock"
)

// azureResponses is the API of Responses at Azure.
const azureResponses = "azure-openai-responses"

// dialect makes the client for the API that the model is spoken to by. own says
// that the server is not the provider's.
func (s *Shop) dialect(e llm.Endpoint, own bool) (llm.Provider, error) {
	switch {
	case e.Provider == azureID:
		return s.azure(e)
	case e.Provider == vertexID:
		return s.vertex(e, own)
	}
	switch e.Model.API {
	case anthropic.API:
		return anthropic.New(anthropic.Options{Endpoint: e}), nil
	case openai.API:
		return openai.New(openai.Options{Endpoint: e}), nil
	case responses.API:
		return responses.New(responses.Options{Endpoint: e}), nil
	case google.API:
		return google.New(google.Options{Endpoint: e}), nil
	case bedrock.API:
		return s.bedrock(e, own), nil
	}
	return nil, unspoken(e)
}

func unspoken(e llm.Endpoint) error {
	return app.Hint(fmt.Errorf("model %s/%s: muntin does not speak its API, %s", e.Provider, e.Model.ID, e.Model.API),
		"many models are at several providers: see muntin models %s", e.Model.ID)
}

// fill puts the variables that an address names, as {NAME}, into it.
func (s *Shop) fill(address string) (string, error) {
	if !strings.Contains(address, "{") {
		return address, nil
	}
	var missing error
	filled := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(address, func(name string) string {
		name = strings.Trim(name, "{}")
		if name == "location" {
			name = "GOOGLE_CLOUD_LOCATION"
		}
		value := s.app.Getenv(name)
		if value == "" {
			missing = fmt.Errorf("$%s is not set", name)
		}
		return url.PathEscape(value)
	})
	return filled, missing
}

// azure is OpenAI's models at Azure. With a dated version of the API, the model's
// deployment is a part of the path; without one, it is the newer API, where it is not.
func (s *Shop) azure(e llm.Endpoint) (llm.Provider, error) {
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		return nil, app.Hint(fmt.Errorf("the address of %s is no URL", e.Provider), "correct $AZURE_OPENAI_BASE_URL")
	}
	path := strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(u.Hostname(), ".azure.com") && (path == "" || path == "/openai") {
		path = "/openai/v1"
	}
	e.WireName = deployment(s.app.Getenv("AZURE_OPENAI_DEPLOYMENT_NAME_MAP"), e.Model.ID)
	chat, query := "/chat/completions", u.Query()
	if version := s.app.Getenv("AZURE_OPENAI_API_VERSION"); version != "" {
		query.Set("api-version", version)
		if strings.HasPrefix(version, "20") {
			path = strings.TrimSuffix(path, "/v1")
			chat = "/deployments/" + url.PathEscape(e.WireName) + chat
		}
	}
	u.Path, u.RawQuery = path, query.Encode()
	e.BaseURL = u.String()
	switch e.Model.API {
	case openai.API:
		return openai.New(openai.Options{Endpoint: e, Path: chat}), nil
	case azureResponses, responses.API:
		return responses.New(responses.Options{Endpoint: e, API: e.Model.API}), nil
	case anthropic.API:
		return anthropic.New(anthropic.Options{Endpoint: e}), nil
	}
	return nil, unspoken(e)
}

// deployment gives the name that a list such as "gpt-5=mine,o3=other" has for a
// model, or the model's own.
func deployment(list, model string) string {
	for part := range strings.SplitSeq(list, ",") {
		if id, name, ok := strings.Cut(part, "="); ok && strings.TrimSpace(id) == model && strings.TrimSpace(name) != "" {
			return strings.TrimSpace(name)
		}
	}
	return model
}

// vertex is Gemini and Claude at Vertex AI: with an API key, or in a project with
// the access tokens of the login that Google's own tools keep.
func (s *Shop) vertex(e llm.Endpoint, own bool) (llm.Provider, error) {
	claude := e.Model.API == anthropic.API || strings.HasPrefix(e.Model.ID, "claude-")
	if !claude && e.Model.API != google.VertexAPI {
		return nil, unspoken(e)
	}
	e.BaseURL = strings.Replace(e.BaseURL, "https://global-aiplatform.", "https://aiplatform.", 1)
	var place vertex.Place
	if e.Key == nil || claude {
		place = vertex.Place{Project: s.project(), Location: s.app.Getenv("GOOGLE_CLOUD_LOCATION")}
		if place.Project == "" || place.Location == "" {
			return nil, app.Hint(fmt.Errorf("the project of %s is not known", e.Provider), "set $GOOGLE_CLOUD_PROJECT and $GOOGLE_CLOUD_LOCATION")
		}
		e.KeyHeader = "Authorization"
	}
	if login := vertex.NewLogin(s.app.Getenv, s.app.Now); e.Key == nil && (!own || login.Found()) {
		e.Key = login.Key
	}
	if claude {
		e.Model.API = anthropic.API
		return anthropic.New(anthropic.Options{Endpoint: e, BodyVersion: vertex.ClaudeVersion, Path: func(model string) string {
			return place.Path("anthropic", model) + ":streamRawPredict"
		}}), nil
	}
	return google.New(google.Options{Endpoint: e, API: google.VertexAPI, ModelPath: func(model string) string {
		return place.Path("google", model)
	}}), nil
}

func (s *Shop) project() string {
	if project := s.app.Getenv("GOOGLE_CLOUD_PROJECT"); project != "" {
		return project
	}
	return s.app.Getenv("GCLOUD_PROJECT")
}

// bedrock signs its requests unless there is a key, or its server is one's own and
// nobody has set up anything to sign with.
func (s *Shop) bedrock(e llm.Endpoint, own bool) llm.Provider {
	chain := bedrock.Chain{Getenv: s.app.Getenv}
	o := bedrock.Options{Endpoint: e, Region: chain.Region(), Credentials: chain.Credentials}
	if _, err := chain.Credentials(); err != nil && own {
		o.Credentials = nil
	}
	return bedrock.New(o)
}

// ambient tells where a cloud's own login is, or "". An error says why one that
// there is cannot be used.
func (s *Shop) ambient(p catalog.Provider) (string, error) {
	switch p.ID {
	case vertexID:
		if s.project() != "" && vertex.NewLogin(s.app.Getenv, s.app.Now).Found() {
			return "login of Google", nil
		}
	case bedrockID:
		_, err := bedrock.Chain{Getenv: s.app.Getenv}.Credentials()
		if err == nil {
			return "credentials of AWS", nil
		}
		if !errors.Is(err, bedrock.ErrNone) {
			return "", err
		}
	}
	return "", nil
}

// cloudHint says how a cloud's own login is made.
func cloudHint(p catalog.Provider) string {
	switch p.ID {
	case vertexID:
		return "set $GOOGLE_CLOUD_PROJECT and $GOOGLE_CLOUD_LOCATION and run gcloud auth application-default login"
	case bedrockID:
		return "set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY or $AWS_PROFILE"
	}
	return ""
}
