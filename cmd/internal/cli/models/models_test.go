package models

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/credential"
	"muntin/agent/llm"
	"muntin/agent/llm/catalog"
	"muntin/agent/llm/llmtest"
	"muntin/cmd/internal/cli/app"
	"muntin/internal/state"
	"muntin/internal/term"
)

// shop makes one with an environment and a models.json.
func shop(t *testing.T, models string, env ...string) *Shop {
	t.Helper()
	home := t.TempDir()
	var out bytes.Buffer
	a := &app.App{
		Streams: term.Plain(strings.NewReader(""), &out, &out), Theme: term.DefaultTheme(), Now: time.Now, Environ: append([]string{"HOME=" + home}, env...),
	}
	var err error
	if a.Layout, err = state.NewLayout(a.Getenv); err != nil {
		t.Fatal(err)
	}
	if models != "" {
		if err := os.MkdirAll(a.Layout.Config, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(a.Layout.Models(), []byte(models), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewShop(a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask opens a model and sends it one request.
func ask(t *testing.T, s *Shop, server *llmtest.Server, o Options) (llmtest.Request, Chosen) {
	t.Helper()
	chosen, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v (%s)", o.Name, err, app.HintOf(err))
	}
	before := len(server.Requests())
	e := llmtest.Last(t, chosen.Provider, llm.Request{Model: chosen.Model.ID, Messages: []llm.Message{llm.UserText("go", 1)}})
	if e.Type != llm.EventDone || e.Message.Text() != "x" {
		t.Fatalf("%s: %s %v", o.Name, e.Type, e.Err)
	}
	return server.Requests()[before], chosen
}

func serve(t *testing.T) (*llmtest.Server, string) {
	t.Helper()
	server := llmtest.NewServer(llmtest.Script{Choose: func(int, llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "x"} }})
	t.Cleanup(server.Close)
	return server, strings.TrimSuffix(server.URL, "/v1")
}

func TestAzure(t *testing.T) {
	t.Parallel()
	server, host := serve(t)
	const own = `{"providers":{"azure":{"models":[{"id":"chatty","api":"openai-completions"}]}}}`
	tests := map[string]struct {
		env         []string
		model       string
		path, query string
		wire        string
	}{
		"responses":        {nil, "azure/gpt-4.1", "/openai/v1/responses", "", "gpt-4.1"},
		"responses, dated": {[]string{"AZURE_OPENAI_API_VERSION=2025-04-01-preview"}, "azure/gpt-4.1", "/openai/responses", "api-version=2025-04-01-preview", "gpt-4.1"},
		"responses, v1":    {[]string{"AZURE_OPENAI_API_VERSION=preview"}, "azure/gpt-4.1", "/openai/v1/responses", "api-version=preview", "gpt-4.1"},
		"chat":             {nil, "azure/chatty", "/openai/v1/chat/completions", "", "chatty"},
		"chat, dated": {
			[]string{"AZURE_OPENAI_API_VERSION=2024-10-21", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP=o3=x, chatty=my-chat"}, "azure/chatty",
			"/openai/deployments/my-chat/chat/completions", "api-version=2024-10-21", "my-chat",
		},
	}
	for name, tt := range tests {
		s := shop(t, own, append(tt.env, "AZURE_OPENAI_API_KEY=azure-key-1234", "AZURE_OPENAI_BASE_URL="+host+"/openai/v1")...)
		got, chosen := ask(t, s, server, Options{Name: tt.model})
		if got.Path != tt.path || got.Query != tt.query || got.Model != tt.wire || got.Header.Get("Api-Key") != "azure-key-1234" || got.Header.Get("Authorization") != "" {
			t.Errorf("%s: %s?%s %s %v", name, got.Path, got.Query, got.Model, got.Header)
		}
		if chosen.Name != tt.model {
			t.Errorf("%s: it is called %s", name, chosen.Name)
		}
	}
	_, err := shop(t, own, "AZURE_OPENAI_API_KEY=k").Open(t.Context(), Options{Name: "azure/gpt-4.1"})
	if err == nil || !strings.Contains(err.Error(), "AZURE_OPENAI_RESOURCE_NAME") || !strings.Contains(app.HintOf(err), "AZURE_OPENAI_BASE_URL") {
		t.Errorf("no address: %v", err)
	}
}

// googleLogin writes application default credentials whose tokens a loopback server gives.
func googleLogin(t *testing.T) string {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"adc-token","token_type":"Bearer","expires_in":3600}`))
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b", "private_key_id": "1", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	path := filepath.Join(t.TempDir(), "adc.json")
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVertex(t *testing.T) {
	t.Parallel()
	server, host := serve(t)
	adc := []string{"GOOGLE_APPLICATION_CREDENTIALS=" + googleLogin(t), "GOOGLE_CLOUD_PROJECT=proj", "GOOGLE_CLOUD_LOCATION=global"}
	s := shop(t, "", adc...)
	got, _ := ask(t, s, server, Options{Name: "google-vertex/gemini-2.5-pro", BaseURL: host})
	if got.Path != "/v1/projects/proj/locations/global/publishers/google/models/gemini-2.5-pro:streamGenerateContent" || got.Header.Get("Authorization") != "Bearer adc-token" {
		t.Errorf("Gemini: %s %v", got.Path, got.Header)
	}
	got, chosen := ask(t, s, server, Options{Name: "google-vertex/claude-sonnet-4-5@20250929", BaseURL: host})
	if got.Path != "/v1/projects/proj/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict" ||
		got.Header.Get("Authorization") != "Bearer adc-token" || got.Header.Get("Anthropic-Version") != "" || got.Model != "" ||
		!strings.Contains(string(got.Body), `"anthropic_version":"vertex-2023-10-16"`) {
		t.Errorf("Claude: %s %v %s", got.Path, got.Header, got.Body)
	}
	if chosen.Name != "google-vertex/claude-sonnet-4-5@20250929" {
		t.Errorf("it is called %s", chosen.Name)
	}
	got, _ = ask(t, shop(t, "", "GOOGLE_CLOUD_API_KEY=AIza-123456", "GOOGLE_CLOUD_LOCATION=global"), server, Options{Name: "google-vertex/gemini-2.5-pro", BaseURL: host})
	if got.Path != "/v1/publishers/google/models/gemini-2.5-pro:streamGenerateContent" || got.Header.Get("X-Goog-Api-Key") != "AIza-123456" {
		t.Errorf("with a key: %s %v", got.Path, got.Header)
	}
	_, err := shop(t, "", "GOOGLE_CLOUD_LOCATION=global").Open(t.Context(), Options{Name: "google-vertex/gemini-2.5-pro"})
	if err == nil || !strings.Contains(app.HintOf(err), "gcloud auth application-default login") {
		t.Errorf("no login: %v (%s)", err, app.HintOf(err))
	}
}

func TestBedrock(t *testing.T) {
	t.Parallel()
	server, host := serve(t)
	const model = "amazon-bedrock/eu.amazon.nova-pro-v1:0"
	s := shop(t, "", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu-west-1", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME="+host)
	got, _ := ask(t, s, server, Options{Name: model})
	if got.Path != "/model/eu.amazon.nova-pro-v1:0/converse-stream" || !strings.Contains(got.Header.Get("Authorization"), "/eu-west-1/bedrock/aws4_request") {
		t.Errorf("signed: %s %v", got.Path, got.Header)
	}
	got, _ = ask(t, shop(t, "", "AWS_BEARER_TOKEN_BEDROCK=bedrock-key", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret"), server, Options{Name: model, BaseURL: host})
	if got.Header.Get("Authorization") != "Bearer bedrock-key" {
		t.Errorf("with a key: %v", got.Header)
	}
	got, _ = ask(t, shop(t, ""), server, Options{Name: model, BaseURL: host})
	if got.Header.Get("Authorization") != "" {
		t.Errorf("a server of one's own: %v", got.Header)
	}
	if _, err := shop(t, "", "AWS_PROFILE=none").Open(t.Context(), Options{Name: model}); err == nil || !strings.Contains(err.Error(), `no profile "none"`) {
		t.Errorf("a profile that is not there: %v", err)
	}
	if s.Usable(mustProvider(t, s, "openai")) || !s.Usable(mustProvider(t, s, "amazon-bedrock")) {
		t.Error("what is usable is not told")
	}
}

func TestAliasAndDeadlines(t *testing.T) {
	t.Parallel()
	server, _ := serve(t)
	s := shop(t, `{"aliases":{"mine":"own/m:high"},"providers":{"own":{"baseUrl":"`+server.URL+`","api":"openai-completions","deadlines":{"idle":"7s","whole":"none"},"models":[{"id":"m","samplingParams":{"temperature":0.5}}]}}}`)
	got, chosen := ask(t, s, server, Options{Name: "mine", Deadlines: llm.Deadlines{Idle: time.Second}})
	if chosen.Name != "own/m" || !strings.Contains(string(got.Body), `"temperature":0.5`) {
		t.Errorf("%s: %s", chosen.Name, got.Body)
	}
	choice, err := s.Catalog.Resolve("mine", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.endpoint(t.Context(), choice.Provider, choice.Model, Options{Deadlines: llm.Deadlines{Idle: time.Second}})
	if want := (llm.Deadlines{Idle: time.Second, Whole: -1}); err != nil || e.Deadlines != want {
		t.Errorf("deadlines %+v, %v, want %+v", e.Deadlines, err, want)
	}
}

func mustProvider(t *testing.T, s *Shop, id string) catalog.Provider {
	t.Helper()
	p, ok := s.Catalog.Provider(id)
	if !ok {
		t.Fatalf("there is no provider %s", id)
	}
	return p
}

// TestAccesses: what is set up is told by its name, and never shown.
func TestAccesses(t *testing.T) {
	t.Parallel()
	s := shop(t, `{"providers":{"mine":{"baseUrl":"http://x.test","api":"openai-completions","apiKey":"!echo secret"}}}`,
		"GROQ_API_KEY=gsk-secret", "OPENAI_BASE_URL=http://127.0.0.1:1", "AWS_PROFILE=none")
	past := time.Now().Add(-time.Hour).UnixMilli()
	for id, c := range map[string]credential.Credential{
		"anthropic":     {Type: credential.TypeKey, Key: "sk-secret"},
		"github-models": {Type: credential.TypeOAuth, Access: "secret", Expires: past},
		"openrouter":    {Type: credential.TypeOAuth, Access: "secret", Refresh: "secret", Expires: past, TokenURL: "http://x.test", ClientID: "c"},
	} {
		if err := s.Store.Set(t.Context(), id, c); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Accesses()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"anthropic": "stored", "github-models": "stored!", "openrouter": "stored", "groq": "$GROQ_API_KEY", "mine": "models.json",
		"openai": "$OPENAI_BASE_URL, without a key", "amazon-bedrock": "credentials of AWS!",
	}
	for _, a := range all {
		got := a.From
		if a.Wrong != "" {
			got += "!"
		}
		if want[a.Provider] != got || (a.Wrong == "") != (a.Do == "") || strings.Contains(a.From+a.Wrong+a.Do, "secret") {
			t.Errorf("%+v, want %q", a, want[a.Provider])
		}
		delete(want, a.Provider)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	if found, _ := s.Exposed(); found != "" {
		t.Error(found)
	}
	if err := os.Chmod(s.Store.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if found, do := s.Exposed(); found == "" || !strings.HasPrefix(do, "chmod 600 ") {
		t.Errorf("%q, %q", found, do)
	}
}

// TestRenewal: a login that has ended is renewed at its server, and the request
// carries the new token.
func TestRenewal(t *testing.T) {
	t.Parallel()
	server, _ := serve(t)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("refresh_token") != "r1" || r.Form.Get("client_id") != "mine" {
			t.Errorf("form %v, %v", r.Form, err)
		}
		_, _ = w.Write([]byte(`{"access_token":"new-token","refresh_token":"r2","expires_in":28800}`))
	}))
	t.Cleanup(tokens.Close)
	s := shop(t, "")
	if err := s.Store.Set(t.Context(), "github-models", credential.Credential{
		Type: credential.TypeOAuth, Access: "old", Refresh: "r1", Expires: 1, TokenURL: tokens.URL, ClientID: "mine",
	}); err != nil {
		t.Fatal(err)
	}
	got, _ := ask(t, s, server, Options{Name: "github-models/some/model", BaseURL: server.URL})
	s.app.Background.Wait()
	if got.Header.Get("Authorization") != "Bearer new-token" {
		t.Errorf("headers %v", got.Header)
	}
	if c, _, err := s.Store.Get("github-models"); err != nil || c.Refresh != "r2" || c.Ended(time.Now().Add(time.Hour)) {
		t.Errorf("stored %+v, %v", c, err)
	}
}
