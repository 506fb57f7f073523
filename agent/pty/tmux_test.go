package pty

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	creack "github.com/creack/pty"
)

// A tmuxServer is a real one, private to a test.
type tmuxServer struct {
	t      *testing.T
	socket string
}

func startTmux(t *testing.T) *tmuxServer {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "mp")
	if err != nil {
		t.Fatal(err)
	}
	s := &tmuxServer{t: t, socket: filepath.Join(dir, "s")}
	conf := filepath.Join(dir, "conf")
	text := "set -g default-terminal tmux-256color\nset -g remain-on-exit on\nset -s set-clipboard on\nset -g status off\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = s.try("kill-server")
		os.RemoveAll(dir)
	})
	s.tmux("-f", conf, "new-session", "-d", "-s", "keep", "sleep 1000")
	return s
}

func (s *tmuxServer) try(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TMUX") && !strings.HasPrefix(kv, "LC_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *tmuxServer) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return out
}

// A tmuxPane is one pane, alone in its session.
type tmuxPane struct {
	s   *tmuxServer
	id  string
	dir string // of the supervised agent's state
}

func (s *tmuxServer) bare(argv ...string) tmuxPane {
	s.t.Helper()
	if len(argv) == 1 {
		argv = append([]string{"env"}, argv...) // no shell in between
	}
	id := s.tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "24", "-P", "-F", "#{pane_id}", "--"}, argv...)...)
	return tmuxPane{s: s, id: strings.TrimSpace(id)}
}

// supervised runs the command under a supervisor in a pane.
func (s *tmuxServer) supervised(argv ...string) tmuxPane {
	s.t.Helper()
	dir := newDir(s.t)
	p := s.bare(s.supervisor(superOptions{Dir: dir, Argv: argv, Adapter: quickFor(argv...), Grace: 500 * time.Millisecond})...)
	p.dir = dir.Path
	return p
}

func (s *tmuxServer) supervisor(o superOptions) []string {
	s.t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{"env", roleEnv + "=supervisor", "PTY_TEST_OPTIONS=" + string(raw), self(s.t)}
}

func (p tmuxPane) keys(keys ...string) {
	p.s.t.Helper()
	p.s.tmux(append([]string{"send-keys", "-t", p.id, "--"}, keys...)...)
}

func (p tmuxPane) capture(args ...string) string {
	p.s.t.Helper()
	return p.s.tmux(append([]string{"capture-pane", "-p", "-t", p.id}, args...)...)
}

func (p tmuxPane) format(f string) string {
	p.s.t.Helper()
	return strings.TrimRight(p.s.tmux("list-panes", "-t", p.id, "-F", f), "\n")
}

// until waits until fn gives what is wanted.
func (p tmuxPane) until(what string, fn func() bool) {
	p.s.t.Helper()
	ctx := testContext(p.s.t)
	for !fn() {
		if wait(ctx, 20*time.Millisecond) != nil {
			state, _ := os.ReadFile("/proc/" + p.format("#{pane_pid}") + "/stat") // Z: tmux has not waited for it
			p.s.t.Fatalf("never: %s; the pane is %s (%.60s) and shows\n%s",
				what, p.format("#{pane_dead} #{pane_dead_status} #{pane_dead_signal}"), state, p.capture())
		}
	}
}

func (p tmuxPane) shows(want string) {
	p.s.t.Helper()
	p.until("showing "+want, func() bool { return strings.Contains(p.capture(), want) })
}

func (p tmuxPane) is(format, want string) {
	p.s.t.Helper()
	p.until(format+" is "+want, func() bool {
		got := p.format(format + "/#{pid}/#{pane_dead}")
		value, server, _ := strings.Cut(got, "/")
		if pid, dead := strings.CutSuffix(server, "/1"); dead && value != want {
			p.s.nudge(pid)
		}
		return value == want
	})
}

// nudge makes a server wait for its children once more: tmux 3.3a misses the end
// of one at times, and then never tells how it ended.
func (s *tmuxServer) nudge(pid string) {
	s.t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		s.t.Fatalf("the server's pid is %q", pid)
	}
	_ = syscall.Kill(n, syscall.SIGCHLD)
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// What a person or tmux sees of a supervised program is what they see of a
// bare one.
func TestInTmux(t *testing.T) {
	t.Parallel()
	s := startTmux(t)
	checks := []struct {
		name string
		do   func(t *testing.T, s *tmuxServer)
	}{
		{"exit status", func(_ *testing.T, s *tmuxServer) {
			s.supervised(sh("exit 7")...).is("#{pane_dead} #{pane_dead_status}", "1 7")
			s.supervised("/nonexistent/program").is("#{pane_dead} #{pane_dead_status}", "1 127")
			s.supervised(sh("kill -9 $$")...).is("#{pane_dead} #{pane_dead_signal}", "1 9")
			s.supervised(sh("kill -TERM $$")...).is("#{pane_dead} #{pane_dead_signal}", "1 15")
		}},
		{"size", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done")...)
			p.shows("24 80")
			s.tmux("resize-window", "-t", p.id, "-x", "91", "-y", "13")
			p.shows("13 91")
		}},
		{"interrupt and quit", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh("trap 'echo got-int' INT; trap 'echo got-quit; exit 4' QUIT; echo up; while :; do sleep 0.05; done")...)
			p.shows("up")
			p.keys("C-c")
			p.shows("got-int")
			p.keys(`C-\`)
			p.is("#{pane_dead_status}", "4")
		}},
		{"job control", func(t *testing.T, s *tmuxServer) {
			p := s.supervised(bash(t)...)
			p.keys("sh -c 'echo be\"\"gun; exec sleep 1000'", "Enter")
			p.shows("begun")
			p.keys("C-z")
			p.shows("Stopped")
			p.keys("bg", "Enter")
			p.shows("sleep 1000' &")
			p.keys("fg", "Enter")
			p.shows("fg\nsh -c") // an interrupt throws away what is typed ahead
			p.keys("C-c")
			p.shows("^C")
			p.keys("echo af\"\"ter", "Enter")
			p.shows("after")
		}},
		{"hang-up", func(t *testing.T, s *tmuxServer) {
			file := filepath.Join(t.TempDir(), "f")
			p := s.supervised(sh("trap 'echo hup >> " + file + "; exit' HUP; echo pid=$$= > " + file + "; while :; do sleep 0.05; done")...)
			waitFile(t, file, "=\n")
			s.tmux("kill-pane", "-t", p.id)
			waitFile(t, file, "hup")
		}},
		{"hang-up ignored", func(t *testing.T, s *tmuxServer) {
			file := filepath.Join(t.TempDir(), "f")
			p := s.supervised(sh("trap '' HUP TERM; echo pid=$$= > " + file + "; while :; do sleep 0.05; done")...)
			waitFile(t, file, "=\n")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscanf(string(data), "pid=%d=", &pid); err != nil {
				t.Fatal(err)
			}
			s.tmux("kill-pane", "-t", p.id)
			waitGone(t, pid)
		}},
		{"modes restored", func(t *testing.T, s *tmuxServer) {
			dir := newDir(t)
			argv := s.supervisor(superOptions{Dir: dir, Argv: sh("stty raw -echo; exit 3"), Adapter: quickFor("x")})
			script := `stty -a > ` + dir.Path + `.before; "$@"; echo "status=$?"; stty -a > ` + dir.Path + `.after; echo over; exec sleep 1000`
			p := s.bare(append([]string{"/bin/sh", "-c", script, "x"}, argv...)...)
			p.shows("over")
			p.shows("status=3")
			before, err := os.ReadFile(dir.Path + ".before")
			after, err2 := os.ReadFile(dir.Path + ".after")
			if err != nil || err2 != nil || string(before) != string(after) {
				t.Errorf("%v %v\n%s\nthen\n%s", err, err2, before, after)
			}
		}},
		{"title", func(_ *testing.T, s *tmuxServer) {
			s.supervised(sh(`printf '\033]2;a title; of its own\033\\'; exec sleep 1000`)...).is("#{pane_title}", "a title; of its own")
		}},
		{"mouse and keypad", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh(`printf '\033[?1002h\033[?1006h\033=\033[?1h'; exec sleep 1000`)...)
			p.is("#{mouse_button_flag}#{mouse_sgr_flag}#{keypad_flag}#{keypad_cursor_flag}", "1111")
		}},
		{"colours", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh(`printf '\033[38;2;1;2;3mtrue\033[48;5;99mpalette\033[m'; exec sleep 1000`)...)
			p.until("the colours", func() bool {
				text := p.capture("-e")
				return strings.Contains(text, "38;2;1;2;3") && strings.Contains(text, "48;5;99")
			})
		}},
		{"answers of the terminal", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh(`stty raw -echo; printf '\033[c\033[6n'; dd bs=1 count=12 2>/dev/null | od -An -c; exec sleep 1000`)...)
			p.shows("033   [   ?")
		}},
		{"bracketed paste", func(t *testing.T, s *tmuxServer) {
			file := filepath.Join(t.TempDir(), "f")
			p := s.supervised(sh(`stty raw -echo; printf '\033[?2004hup'; exec dd bs=1 of=` + file + ` 2>/dev/null`)...)
			p.shows("up")
			s.tmux("set-buffer", "-b", "x", "two\nlines")
			s.tmux("paste-buffer", "-p", "-r", "-b", "x", "-t", p.id)
			waitFile(t, file, "\x1b[200~two\nlines\x1b[201~")
		}},
		{"focus", func(t *testing.T, s *tmuxServer) {
			file := filepath.Join(t.TempDir(), "f")
			p := s.supervised(sh(`stty raw -echo; printf '\033[?1004hup'; exec dd bs=1 of=` + file + ` 2>/dev/null`)...)
			p.shows("up")
			s.tmux("set-option", "-g", "focus-events", "on")
			client := s.attach()
			s.tmux("switch-client", "-c", client, "-t", p.id)
			waitFile(t, file, "\x1b[I")
			s.tmux("switch-client", "-c", client, "-t", "keep")
			waitFile(t, file, "\x1b[O")
		}},
		{"clipboard", func(_ *testing.T, s *tmuxServer) {
			p := s.supervised(sh(`printf '\033]52;c;aGVsbG8gY2xpcA==\007'; exec sleep 1000`)...)
			p.until("the clipboard", func() bool { out, _ := s.try("show-buffer"); return strings.Contains(out, "hello clip") })
		}},
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			check.do(t, &tmuxServer{t: t, socket: s.socket})
		})
	}
}

// A program that prints and exits at once loses not a byte: 20 panes at a time,
// 8 KB each, the last line of all of them is on the screen.
func TestLastLinesInTmux(t *testing.T) {
	t.Parallel()
	s := startTmux(t)
	var panes []tmuxPane
	for i := range 20 {
		panes = append(panes, s.supervised(sh(fmt.Sprintf(`seq -f '%%063.0f' 128; printf 'the last line of %d'`, i))...))
	}
	for i, p := range panes {
		p.until("ending", func() bool { return p.format("#{pane_dead}") == "1" })
		if !strings.Contains(p.capture(), fmt.Sprintf("the last line of %d", i)) {
			t.Errorf("pane %d shows\n%s", i, p.capture())
		}
	}
}

// attach has a client show the server, in a terminal of its own that nobody
// looks at, until the test ends. It gives the client's name.
func (s *tmuxServer) attach() (client string) {
	s.t.Helper()
	cmd := exec.Command("tmux", "-S", s.socket, "attach-session", "-t", "keep")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=")
	ptmx, err := creack.StartWithSize(cmd, &creack.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		s.t.Fatal(err)
	}
	screen := newScreen(s.t, ptmx)
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-screen.done
		_ = ptmx.Close()
	})
	ctx := testContext(s.t)
	for client == "" {
		client = strings.TrimSpace(s.tmux("list-clients", "-F", "#{client_name}"))
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			s.t.Fatalf("the client did not attach; it shows\n%q", screen.String())
		}
	}
	return client
}

// A step is keys for a full-screen program, or a size, and what it must show
// then.
type tuiStep struct {
	keys       []string
	cols, rows string
	want       string
}

// A fullScreen is a program and what is done with it.
type fullScreen struct {
	program, command string
	steps            []tuiStep
	lives            bool // what it shows changes by itself
}

// monitor is htop, or top, which is where there is a shell.
func monitor() fullScreen {
	quit := tuiStep{keys: []string{"q"}}
	if _, err := exec.LookPath("htop"); err == nil {
		return fullScreen{"htop", "exec htop -d 1000", []tuiStep{{want: "F10Quit"}, {cols: "90", rows: "20", want: "F10Quit"}, {keys: []string{"F1"}, want: "htop dev team"}, {keys: []string{"q"}, want: "F10Quit"}, quit}, true}
	}
	return fullScreen{"top", "exec top", []tuiStep{{want: "PID"}, {cols: "70", rows: "20", want: "PID"}, quit}, true}
}

// Full-screen programs look the same with the supervisor as without it, after
// each step.
func TestFullScreen(t *testing.T) {
	t.Parallel()
	s := startTmux(t)
	tests := []fullScreen{
		{"vim", "exec vim -u NONE -N -i NONE -n text", []tuiStep{
			{want: "line 3"}, {keys: []string{":set number ruler hlsearch", "Enter"}, want: "  3 line 3"}, {keys: []string{"3Goinserted 漢字 é", "Escape"}, want: "inserted 漢字"},
			{cols: "63", rows: "11", want: "inserted"}, {keys: []string{"/line 44", "Enter"}, want: "line 44"}, {keys: []string{":vsplit", "Enter"}, want: "|"},
			{keys: []string{":w", "Enter"}, want: "written"}, {keys: []string{":qa!", "Enter"}},
		}, false},
		{"less", "exec less text", []tuiStep{
			{want: "line 5"}, {keys: []string{"Space"}, want: "line 40"}, {keys: []string{"/line 77", "Enter"}, want: "line 77"},
			{cols: "50", rows: "9", want: "line 77"}, {keys: []string{"G"}, want: "line 100"}, {keys: []string{"q"}},
		}, false},
		monitor(),
	}
	for _, test := range tests {
		t.Run(test.program, func(t *testing.T) {
			t.Parallel()
			s := &tmuxServer{t: t, socket: s.socket}
			files := []string{textFile(t), textFile(t)}
			in := func(file string) []string { return sh("cd " + filepath.Dir(file) + "; " + test.command) }
			bare, inside := s.bare(in(files[0])...), s.supervised(in(files[1])...)
			for i, step := range test.steps {
				for _, p := range []tmuxPane{bare, inside} {
					if step.cols != "" {
						s.tmux("resize-window", "-t", p.id, "-x", step.cols, "-y", step.rows)
					}
					if len(step.keys) > 0 {
						p.keys(step.keys...)
					}
					if step.want != "" {
						p.shows(step.want)
					}
				}
				if test.lives || i == len(test.steps)-1 {
					continue // its figures differ; they end
				}
				bare.until(fmt.Sprintf("the same in step %d:\n%s", i+1, inside.capture()), func() bool { return look(bare) == look(inside) })
			}
			for _, p := range []tmuxPane{bare, inside} {
				p.is("#{pane_dead} #{pane_dead_status}", "1 0")
			}
			if test.program != "vim" {
				return
			}
			a, errA := os.ReadFile(files[0])
			b, errB := os.ReadFile(files[1])
			if errA != nil || errB != nil || string(a) != string(b) || !strings.Contains(string(a), "inserted 漢字 é") {
				t.Errorf("the files differ: %v %v", errA, errB)
			}
		})
	}
}

// look is all that tmux knows of a pane's screen.
func look(p tmuxPane) string {
	return p.capture("-e", "-N") + p.format("#{alternate_on} #{cursor_x},#{cursor_y} #{cursor_flag} #{insert_flag} #{keypad_flag} #{pane_width}x#{pane_height}")
}

// textFile makes a file of a hundred lines.
func textFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
