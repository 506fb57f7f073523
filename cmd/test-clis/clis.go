package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A place is where one CLI is tried: the model's address, and folders that
// nobody else uses.
type place struct{ url, home, work string }

// A product is a CLI and how its own settings point it at a model of ours.
type product struct {
	name    string
	all     []string // the command that asks for nothing
	ask     []string // the command that asks for each write; nil: it has no approvals
	approve string   // the key that says yes
	env     func(place) []string
	files   func(place) map[string]string
}

// version is what every CLI calls the version of its API; the server's
// address ends with it, and some add it themselves.
func root(p place) string { return strings.TrimSuffix(p.url, "/v1") }

//nolint:funlen // a table
func products() []product {
	return []product{
		{
			name: "pi", all: []string{"pi"},
			env: func(p place) []string {
				return []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"}
			},
			files: func(p place) map[string]string {
				return map[string]string{
					".pi/agent/models.json": fmt.Sprintf(`{"providers":{"trial":{"baseUrl":%q,"api":"openai-completions","apiKey":"dummy","models":[{"id":"trial-model",
"contextWindow":200000,"maxTokens":8192,"input":["text"],"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}}]}}}`, p.url),
					".pi/agent/settings.json": `{"defaultProvider":"trial","defaultModel":"trial-model","quietStartup":true,"defaultProjectTrust":"never"}`,
				}
			},
		},
		{
			name: "claude", approve: "Enter",
			all: []string{"claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"}, ask: []string{"claude", "--permission-mode", "default"},
			env: func(p place) []string {
				return []string{
					"ANTHROPIC_BASE_URL=" + root(p), "ANTHROPIC_AUTH_TOKEN=dummy-token", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
					"ANTHROPIC_MODEL=claude-sonnet-4-5", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
				}
			},
			files: func(p place) map[string]string {
				return map[string]string{
					".claude.json":          fmt.Sprintf(`{"hasCompletedOnboarding":true,"projects":{%q:{"hasTrustDialogAccepted":true}}}`, p.work),
					".claude/settings.json": `{"theme":"dark"}`,
				}
			},
		},
		{
			name: "codex", approve: "Enter",
			all: []string{"codex", "-a", "never", "-s", "danger-full-access"}, ask: []string{"codex", "-a", "on-request", "-s", "read-only"},
			env: func(p place) []string {
				return []string{"TRIAL_KEY=dummy-key", "CODEX_HOME=" + filepath.Join(p.home, ".codex")}
			},
			files: func(p place) map[string]string {
				return map[string]string{".codex/config.toml": fmt.Sprintf(`model = "trial-model"
model_provider = "trial"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.trial]
name = "Trial"
base_url = %q
env_key = "TRIAL_KEY"
wire_api = "responses"
supports_websockets = false
[projects.%q]
trust_level = "trusted"
`, p.url, p.work)}
			},
		},
		{
			name: "gemini", approve: "Enter",
			all: []string{"gemini", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"}, ask: []string{"gemini", "--approval-mode", "default", "-m", "gemini-2.5-pro"},
			env: func(p place) []string {
				return []string{
					"GEMINI_API_KEY=dummy-key", "GOOGLE_GEMINI_BASE_URL=" + root(p), "GEMINI_TELEMETRY_ENABLED=false", "GEMINI_CLI_TRUST_WORKSPACE=true",
				}
			},
			files: func(place) map[string]string {
				return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},"ide":{"enabled":false}}`}
			},
		},
		{
			name: "qwen", approve: "Enter",
			all: []string{"qwen", "--approval-mode", "yolo"}, ask: []string{"qwen", "--approval-mode", "default"},
			env: func(p place) []string {
				return []string{"OPENAI_API_KEY=dummy-key", "OPENAI_BASE_URL=" + p.url, "OPENAI_MODEL=trial-model"}
			},
			files: func(place) map[string]string {
				return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},
"general":{"enableAutoUpdate":false},"model":{"name":"trial-model"}}`}
			},
		},
		{
			name: "opencode", approve: "Enter",
			all: []string{"opencode"}, ask: []string{"env", `OPENCODE_PERMISSION={"edit":"ask","bash":"ask"}`, "opencode"},
			env: func(place) []string {
				return []string{
					"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
				}
			},
			files: func(p place) map[string]string {
				return map[string]string{".config/opencode/opencode.json": fmt.Sprintf(`{"autoupdate":false,"share":"disabled","model":"trial/trial-model",
"small_model":"trial/trial-model","enabled_providers":["trial"],"provider":{"trial":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%q,"apiKey":"dummy"},
"models":{"trial-model":{"tool_call":true,"limit":{"context":200000,"output":8192},"cost":{"input":1,"output":2}}}}}}`, p.url)}
			},
		},
	}
}
