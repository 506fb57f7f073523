package pty

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muntin/internal/durable"
	"muntin/internal/id"
)

func TestSocket(t *testing.T) {
	t.Parallel()
	p, _ := runAgent(t, Options{})
	ctx := testContext(t)
	c := p.client()
	if v, err := c.Hello(ctx); err != nil || v != ProtocolVersion {
		t.Errorf("hello: %d, %v", v, err)
	}
	p.ready()
	st, err := c.Status(ctx)
	if err != nil || st.Run != "r" || st.Agent != "a" || st.PID != os.Getpid() || st.State != AgentIdle {
		t.Errorf("status: %+v, %v", st, err)
	}
	for path, want := range map[string]os.FileMode{p.dir.Socket: 0o600, filepath.Dir(p.dir.Socket): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := c.Attach(ctx); err == nil || !strings.Contains(err.Error(), "attached already") {
		t.Errorf("a second link: %v", err)
	}
	if _, err := Run(ctx, Options{Run: "r", Agent: "a", Dir: p.dir, Argv: []string{"/bin/true"}}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second supervisor: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Status(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context has ended: %v", err)
	}
}

// What is no request is answered with an error, and harms nobody.
func TestSocketBadRequests(t *testing.T) {
	t.Parallel()
	p, _ := runAgent(t, Options{})
	p.client()
	conn, err := net.Dial("unix", p.dir.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for _, line := range []string{
		"not json", `{"id":5,"op":"nonsense"}`, `{"op":"send"}`, `[1]`, `{"id":7,"op":"report"}`,
		`{"id":8,"op":"send","message":{"id":"../../x","kind":"prompt","text":"x"}}`,
		`{"id":9,"op":"send","message":{"id":"` + id.New(time.Now()) + `","kind":"order","text":"x"}}`,
	} {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			t.Fatal(err)
		}
		answer, err := r.ReadString('\n')
		if err != nil || !strings.Contains(answer, `"error":`) {
			t.Errorf("%s: %s %v", line, answer, err)
		}
	}
	if _, err := fmt.Fprintln(conn, `{"id":10,"op":"hello"}`); err != nil {
		t.Fatal(err)
	}
	if answer, err := r.ReadString('\n'); err != nil || !strings.Contains(answer, `"ok":true`) {
		t.Errorf("hello after all that: %s %v", answer, err)
	}
	endless := strings.Repeat("x", 1<<20)
	for err == nil { // a line without end is cut off
		_, err = conn.Write([]byte(endless))
	}
	if _, err := p.client().Hello(testContext(t)); err != nil {
		t.Errorf("hello on another connection: %v", err)
	}
}

// Events come from any number on, of the past and then live, and are the same
// after a restart, whose numbers go on. A socket that a dead supervisor left is
// replaced.
func TestSubscribeAcrossRestart(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := os.MkdirAll(filepath.Dir(dir.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	if _, err := Dial(testContext(t), dir.Socket); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stale socket: %v", err)
	}
	filed := prompt("filed")
	for range 2 {
		if err := Enqueue(dir, filed); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(dir.Inbox(), id.New(time.Now())+".json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var last int64
	for life := range 2 {
		p, _ := runAgent(t, Options{Dir: dir})
		c := p.client()
		got := make(chan error, 1)
		from := last + 1
		var seen []Event
		ready := make(chan struct{})
		go func() {
			got <- c.Subscribe(testContext(t), from, func(ev Event) error {
				if seen = append(seen, ev); ev.Kind == EventReady {
					close(ready)
				}
				return nil
			})
		}()
		<-ready
		if info := p.send(filed, StateDone); info.State != StateDone {
			t.Errorf("life %d: %+v", life, info)
		}
		p.send(prompt("more"), StateDone)
		if err := c.Stop(testContext(t)); err != nil {
			t.Fatal(err)
		}
		p.wait()
		if err := <-got; err != nil {
			t.Errorf("life %d: subscribing ended with %v", life, err)
		}
		for i, ev := range seen {
			if ev.Seq != from+int64(i) {
				t.Errorf("life %d: event %d came for %d", life, ev.Seq, from+int64(i))
			}
		}
		last = seen[len(seen)-1].Seq
		if seen[len(seen)-1].Kind != EventExit || last != int64(len(eventsOf(t, dir))) {
			t.Errorf("life %d: the last event seen is %+v", life, seen[len(seen)-1])
		}
	}
	if _, err := os.Stat(bad + ".bad"); err != nil {
		t.Errorf("the file that is no message: %v", err)
	}
	turns := 0
	for _, ev := range eventsOf(t, dir) {
		if ev.Kind == EventTurnStart {
			if turns++; ev.Turn != turns {
				t.Errorf("turn %d came for %d", ev.Turn, turns)
			}
		}
	}
	if turns != 3 {
		t.Errorf("%d turns", turns)
	}
}

func TestDeliverDeadline(t *testing.T) {
	t.Parallel()
	p, _ := runAgent(t, Options{})
	p.send(prompt("wait"), StateAccepted)
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	_, err := Deliver(ctx, p.dir, Delivery{Message: prompt("later"), Until: StateAccepted})
	var short *DeliveryError
	if !errors.As(err, &short) || !errors.Is(err, context.DeadlineExceeded) || short.Info.State != StateQueued {
		t.Errorf("%v", err)
	}
}
