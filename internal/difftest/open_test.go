package difftest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muntin/agent/session"
)

const openEnv = "MUNTIN_DIFFTEST_OPEN"

// TestMain lets the test binary open a session and end, so that what that takes
// can be measured as a process of its own.
func TestMain(m *testing.M) {
	path := os.Getenv(openEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if path != "nothing" {
		s, err := session.Open(path, session.Options{})
		if err != nil || len(s.Messages()) == 0 {
			fmt.Fprintln(os.Stderr, "opening:", err)
			os.Exit(1)
		}
	}
}

// hundred is a session of 100 MB of which the last hundredth was not compacted.
// It is written piece by piece: a child's resident memory begins as its parent's.
func hundred(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "big.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w, size := bufio.NewWriter(f), 0
	parent, compacted := "null", false
	line := func(fields string) {
		id := fmt.Sprintf("%08x", size)
		n, err := fmt.Fprintf(w, `{"id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",%s}`+"\n", id, parent, fields)
		if err != nil {
			b.Fatal(err)
		}
		size, parent = size+n, `"`+id+`"`
	}
	fmt.Fprintln(w, `{"type":"session","version":3,"id":"big","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`)
	result := strings.Repeat(`func f(x int) \"quoted\" {\n\treturn x\n}\n`, 500)
	for size < 100<<20 {
		line(`"type":"message","message":{"role":"user","content":[{"type":"text","text":"` + result + `"}],"timestamp":1}`)
		line(`"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"well"}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":2}`)
		if !compacted && size > 99<<20 {
			line(`"type":"compaction","summary":"s","firstKeptEntryId":` + parent + `,"tokensBefore":9`)
			compacted = true
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkOpen100MB opens the same session with muntin and with Pi, each in a
// process of its own, and starts each without opening anything.
func BenchmarkOpen100MB(b *testing.B) {
	modules, node := os.Getenv("MUNTIN_PI"), os.Getenv("MUNTIN_NODE")
	if modules == "" || node == "" {
		b.Skip("MUNTIN_PI and MUNTIN_NODE do not say where Pi is")
	}
	path := hundred(b)
	script := `const {SessionManager}=await import("file://` + filepath.Join(modules, "@earendil-works/pi-coding-agent/dist/core/session-manager.js") + `");
if(process.argv[1]!=="nothing")SessionManager.open(process.argv[1]).buildSessionContext()`
	for _, c := range []struct{ who, what string }{{"muntin", "nothing"}, {"Pi", "nothing"}, {"muntin", path}, {"Pi", path}} {
		name := c.who
		if c.what == "nothing" {
			name += ", nothing opened"
		}
		b.Run(name, func(b *testing.B) {
			var cpu, rss float64
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), node, "--input-type=module", "-e", script, c.what)
				if c.who == "muntin" {
					cmd = exec.CommandContext(b.Context(), os.Args[0])
					cmd.Env = append(os.Environ(), openEnv+"="+c.what)
				}
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				cpu += float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds())
				if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
					rss = max(rss, float64(u.Maxrss)/1024) // kilobytes on Linux
				}
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-ms/op")
			b.ReportMetric(rss, "resident-MB")
		})
	}
}
