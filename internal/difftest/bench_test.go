package difftest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/agent/llm/llmtest"
)

// BenchmarkBesidePi measures both agents in turn, each in RPC mode: from the start
// of the process to the first byte of its first request, and its resident memory
// then, and after a session of 200 turns with a tool call each.
func BenchmarkBesidePi(b *testing.B) {
	if os.Getenv("MUNTIN_PI") == "" {
		b.Skip("MUNTIN_PI does not say where Pi is")
	}
	program := muntin(b)
	for _, who := range []string{"muntin", "Pi"} {
		b.Run(who, func(b *testing.B) {
			server := llmtest.NewServer(model())
			defer server.Close()
			var start, cpu time.Duration
			var idle, full float64
			for b.Loop() {
				d := launch(b, who, program, server.URL)
				before := len(server.Requests())
				d.send(map[string]any{"type": "prompt", "message": "hello"})
				for len(server.Requests()) == before {
					<-server.Arrived()
				}
				start += time.Since(d.begun)
				cpu += cpuOf(b, d.cmd)
				d.settled()
				idle += resident(b, d.cmd)
				for i := range 200 {
					d.send(map[string]any{"type": "prompt", "message": fmt.Sprintf(`call read {"path":"a.txt","limit":%d}`, 1+i%3)})
					d.settled()
				}
				full += resident(b, d.cmd)
				d.close()
			}
			n := float64(b.N)
			b.ReportMetric(float64(start.Milliseconds())/n, "first-request-ms")
			b.ReportMetric(float64(cpu.Microseconds())/1000/n, "first-request-cpu-ms")
			b.ReportMetric(idle/n, "idle-MB")
			b.ReportMetric(full/n, "200-turns-MB")
		})
	}
}

// cpuOf is the processor time of all threads of a process so far.
func cpuOf(b *testing.B, cmd *exec.Cmd) (sum time.Duration) {
	b.Helper()
	threads, err := filepath.Glob(filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "task", "*", "schedstat"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// resident is a process's resident memory in MB.
func resident(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "status"))
	if err != nil {
		b.Skip("there is no /proc")
	}
	var kb float64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscanf(rest, "%f", &kb); err != nil {
				b.Fatal(err)
			}
		}
	}
	return kb / 1024
}
