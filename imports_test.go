// Package muntin_test checks what holds for the module as a whole.
package muntin_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport is the table of ARCHITECTURE.md: who may import whom of ours. The
// longest pattern that fits a package counts; "x/..." fits x and all below it.
// A package may always import what lies below it.
var mayImport = []struct {
	pkg string
	may []string
}{
	{"internal/...", nil},
	{"internal/cast", []string{"internal/durable"}},
	{"internal/trust", []string{"internal/durable", "internal/state"}},
	{"agent/llm", nil},
	{"agent/llm/...", []string{"agent/llm"}},
	{"tmux/...", []string{"tmux/...", "internal/..."}},
	{"checkpoint/...", []string{"checkpoint/...", "internal/..."}},
	{"recipes/...", []string{"recipes/...", "internal/..."}},
	{"agent", []string{"agent/llm"}},
	{"agent/tool", []string{"agent", "agent/llm", "checkpoint/ignore", "internal/..."}}, // the ignore rules are pure
	{"agent/session", []string{"agent", "agent/llm", "internal/..."}},
	{"agent/session/...", []string{"agent/session", "agent/llm", "internal/..."}},
	{"agent/compact", []string{"agent", "agent/llm", "internal/..."}},
	{"agent/credential", []string{"agent/llm", "internal/..."}},
	{"agent/resource/...", []string{"agent", "agent/llm", "agent/resource/...", "internal/..."}},
	{"agent/extension", []string{"agent", "agent/llm", "internal/..."}},
	{"agent/extension/...", []string{"agent/extension", "agent", "agent/llm", "internal/..."}},
	{"agent/mcp", []string{"agent", "agent/llm", "internal/..."}},
	{"agent/harness", []string{
		"agent", "agent/llm", "agent/tool", "agent/session", "agent/compact", "agent/resource", "agent/extension", "internal/...",
	}},
	{"agent/tui", []string{"agent", "agent/llm", "agent/harness", "agent/session", "internal/..."}},
	{"agent/tui/live", nil},
	{"agent/tui/editor", []string{"internal/..."}},
	{"agent/rpc", []string{"agent", "agent/llm", "agent/harness", "agent/session", "internal/..."}},
	{"agent/acp", []string{"agent", "agent/llm", "agent/harness", "internal/..."}},
	{"agent/adapter/...", []string{"agent/adapter", "internal/..."}},
	{"agent/pty", []string{"agent/adapter", "checkpoint", "internal/..."}},
	{"orchestrator/...", []string{"orchestrator/...", "agent/pty", "agent/adapter", "tmux", "checkpoint", "recipes/...", "internal/..."}},
	{"cmd/...", []string{"..."}},
}

// walls say which third-party modules are used where.
var walls = []struct {
	module string
	only   []string
}{
	{"github.com/spf13/cobra", []string{"cmd/..."}},
	{"github.com/go-git/go-git/v5", []string{"checkpoint/..."}},
	{"github.com/creack/pty", []string{"agent/pty"}},
	{"github.com/fsnotify/fsnotify", []string{"orchestrator/watch", "checkpoint/watch"}},
	{"charm.land/bubbletea/v2", []string{"agent/tui", "orchestrator/dash", "internal/rest"}},
	{"charm.land/lipgloss/v2", []string{"agent/tui", "orchestrator/dash", "internal/term"}},
	{"net/http", []string{"agent/llm/...", "agent/mcp", "orchestrator/notify"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"agent/mcp", "cmd/internal/cli/mcp"}},
	{"github.com/coder/acp-go-sdk", []string{"agent/acp"}},
	{"github.com/landlock-lsm/go-landlock", []string{"agent/extension/sandbox"}},
	{"github.com/yuin/goldmark", nil}, // the oracle of tests only: it costs a millisecond at every start
	{"github.com/aws", []string{"agent/llm/bedrock", "agent/llm/llmtest"}},
	{"golang.org/x/oauth2", []string{"agent/llm/vertex"}},
	{"github.com/goccy/go-yaml", []string{"recipes/...", "agent/llm/scripted", "orchestrator/board", "agent/adapter/custom", "agent/resource/...", "agent/extension"}},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var list []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func fits(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return pattern == pkg
}

// rule is what a package may import, by the longest pattern that fits.
func rule(pkg string) (may []string, ok bool) {
	longest := -1
	for _, r := range mayImport {
		if fits(r.pkg, pkg) && len(r.pkg) > longest {
			longest, may, ok = len(r.pkg), r.may, true
		}
	}
	return may, ok
}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	const module = "muntin/"
	for _, p := range packages(t) {
		pkg, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue // this package
		}
		may, ok := rule(pkg)
		if !ok {
			t.Errorf("%s is in no row of the table", pkg)
			continue
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours || strings.HasPrefix(dep, pkg+"/") {
				continue
			}
			if path.Base(dep) == "internal" || strings.Contains(dep, "/internal/") && !strings.HasPrefix(dep, "cmd/") {
				continue // the compiler keeps those inside their parent
			}
			if strings.HasPrefix(dep, "cmd/") && !strings.HasPrefix(pkg, "cmd/") || !slices.ContainsFunc(may, func(m string) bool { return fits(m, dep) }) {
				t.Errorf("%s may not import %s", pkg, dep)
			}
		}
	}
}

func TestThirdPartyWalls(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, "muntin/")
		for _, imp := range p.Imports {
			for _, w := range walls {
				if (imp == w.module || strings.HasPrefix(imp, w.module+"/")) &&
					!slices.ContainsFunc(w.only, func(m string) bool { return fits(m, pkg) }) {
					t.Errorf("%s may not import %s", pkg, imp)
				}
			}
		}
	}
}
