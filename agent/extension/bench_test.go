package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muntin/agent/extension"
)

// BenchmarkTenExtensions is what ten configured extensions cost at the agent's start:
// nothing of them runs yet.
func BenchmarkTenExtensions(b *testing.B) {
	dir := b.TempDir()
	for i := range 10 {
		name := fmt.Sprintf("ext-%d", i)
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, extension.ManifestName), []byte(strings.Replace(whole, "name: whole", "name: "+name, 1)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		all, problems := extension.Load(extension.Place{Dir: dir})
		if len(all) != 10 || len(problems) > 0 {
			b.Fatal(problems)
		}
		h, err := extension.New(b.Context(), extension.Options{Extensions: all})
		if err != nil {
			b.Fatal(err)
		}
		h.Tools()
		h.Close()
	}
}

// BenchmarkGate is one question to a program that runs.
func BenchmarkGate(b *testing.B) {
	e := ext("plain", "plain", on("tool_call")...)
	h, err := extension.New(b.Context(), extension.Options{Extensions: []extension.Extension{e}, State: b.TempDir(), Env: os.Environ()})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for b.Loop() {
		if _, err := h.BeforeTool(b.Context(), bash()); err != nil {
			b.Fatal(err)
		}
	}
}
