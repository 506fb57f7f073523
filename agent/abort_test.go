package agent_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
)

// settlesIn is what an abort may take, in the fake time of synctest.
const settlesIn = 200 * time.Millisecond

// abortAt runs a prompt and aborts it when an event of this type comes.
func abortAt(t *testing.T, k *kit, typ agent.EventType) {
	t.Helper()
	var at time.Time
	k.on = func(e agent.Event) error {
		if e.Type == typ && at.IsZero() {
			at = time.Now()
			k.Abort()
		}
		return nil
	}
	k.Steer(llm.UserText("s1", 0))
	k.Steer(llm.UserText("s2", 0))
	err := k.prompt(t, "go")
	if !errors.Is(err, agent.ErrAborted) {
		t.Errorf("error %v, want ErrAborted", err)
	}
	if at.IsZero() {
		t.Fatalf("no event %s", typ)
	}
	if took := time.Since(at); took > settlesIn {
		t.Errorf("settled after %s", took)
	}
	settled := k.find(agent.EventSettled)
	if len(settled) != 1 || !settled[0].Aborted || k.Running() {
		t.Errorf("settled %+v, running %v", settled, k.Running())
	}
	k.checkGrammar(t)
}

// deaf is a provider that does not heed its context until stop is closed.
type deaf struct{ stop chan struct{} }

func (d deaf) Stream(context.Context, llm.Request) iter.Seq[llm.Event] {
	return func(yield func(llm.Event) bool) {
		b := llm.NewBuilder(llm.Message{Model: "deaf"}, yield)
		b.Text("first")
		<-d.stop
		b.Done(llm.StopEnd, nil)
	}
}

func TestAbortStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, hangs, says("r"))
		abortAt(t, k, agent.EventMessageUpdate)
		equal(t, "transcript", outline(k.Messages()), []string{"u:go", "u:s1", "a:first!aborted"})
		steering, _ := k.Queued()
		equal(t, "queued", outline(steering), []string{"u:s2"})
		if err := k.Continue(t.Context()); err != nil { // goes on with what is queued
			t.Fatal(err)
		}
		equal(t, "request", outline(k.provider.sent()[1].Messages), []string{"u:go", "u:s1", "u:s2"})
	})
}

func TestAbortDeafProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := deaf{stop: make(chan struct{})}
		k := newKit(t, func(o *agent.Options) { o.Provider = d })
		abortAt(t, k, agent.EventMessageUpdate)
		m := k.Messages()[2]
		if m.Text() != "first" || m.StopReason != llm.StopAborted || m.Model != "deaf" {
			t.Errorf("message %+v", m)
		}
		close(d.stop)
		synctest.Wait()
		k.checkGrammar(t) // what the provider still said is not told
	})
}

func TestAbortDeafTools(t *testing.T) {
	t.Parallel()
	for _, sequential := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			k := newKit(t, func(o *agent.Options) {
				o.Tools = []agent.Tool{
					tool{name: "deaf", sequential: sequential, run: func(_ context.Context, _ raw, up update) (result, error) {
						up(agent.TextResult("working"))
						<-stop
						up(agent.TextResult("still working"))
						return agent.TextResult("ignored"), nil
					}},
					tool{name: "good", run: func(ctx context.Context, _ raw, _ update) (result, error) {
						<-ctx.Done()
						return agent.TextResult("part"), ctx.Err()
					}},
				}
			}, calls(llm.StopToolUse, "deaf {}", "good {}"))
			abortAt(t, k, agent.EventToolUpdate)
			got := outline(k.Messages())[3:]
			want := []string{"t:!Operation aborted. The tool did not stop in time; what it did is not known.", "t:!partOperation aborted"}
			if sequential {
				want[1] = "t:!Operation aborted"
			}
			equal(t, "results", got, want)
			if n := len(k.provider.sent()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			close(stop)
			synctest.Wait()
		})
	}
}

func TestAbortElsewhere(t *testing.T) {
	t.Parallel()
	overloaded := fails(&llm.Error{Class: llm.ClassRetryable, Message: "overloaded"})
	for name, tt := range map[string]struct {
		at      agent.EventType
		replies []reply
		want    []string
	}{
		"before the turn":   {agent.EventAgentStart, nil, []string{"u:go", "u:s1", "a:!aborted"}},
		"before the stream": {agent.EventMessageEnd, nil, []string{"u:go", "u:s1", "a:!aborted"}},
		"before the tools": {
			agent.EventToolStart, []reply{calls(llm.StopToolUse, "echo {}", "echo {}")},
			[]string{"u:go", "u:s1", "a:(echo)(echo)", "t:!Operation aborted", "t:!Operation aborted"},
		},
		"in the wait for a retry": {agent.EventRetry, []reply{overloaded}, []string{"u:go", "u:s1", "a:!error"}},
		"after the answer":        {agent.EventTurnEnd, []reply{says("r")}, []string{"u:go", "u:s1", "a:r"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t, nil, tt.replies...)
			abortAt(t, k, tt.at)
			equal(t, name, outline(k.Messages()), tt.want)
			if steering, _ := k.Queued(); len(steering) != 1 {
				t.Errorf("%s: queue %v", name, outline(steering))
			}
		})
	}
}

func TestAbortByContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, hangs, says("r"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := k.Prompt(ctx, llm.UserText("go", 0))
		if !errors.Is(err, agent.ErrAborted) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want ErrAborted for the deadline", err)
		}
		if err := k.Prompt(ctx, llm.UserText("never", 0)); !errors.Is(err, agent.ErrAborted) {
			t.Errorf("error %v, want ErrAborted", err)
		}
		equal(t, "transcript", outline(k.Messages()), []string{"u:go", "a:first!aborted"})
		k.Abort() // idle: nothing happens
		if err := k.prompt(t, "again"); err != nil {
			t.Error(err)
		}
	})
}

// TestEventErrorWhileToolsRun: the tools are stopped and waited for.
func TestEventErrorWhileToolsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		k := newKit(t, func(o *agent.Options) {
			o.Tools = []agent.Tool{tool{name: "t", run: func(ctx context.Context, _ raw, up update) (result, error) {
				up(agent.TextResult("x"))
				<-ctx.Done()
				time.Sleep(50 * time.Millisecond) //nolint:forbidigo // fake time
				ended = true
				return result{}, ctx.Err()
			}}}
		}, calls(llm.StopToolUse, "t {}"))
		full := errors.New("disk full")
		k.on = func(e agent.Event) error {
			if e.Type == agent.EventToolUpdate {
				return full
			}
			return nil
		}
		if err := k.prompt(t, "go"); !errors.Is(err, full) || !ended {
			t.Errorf("error %v, tool ended %v", err, ended)
		}
	})
}

// TestBadProviders break the contract; the run ends with an error all the same.
func TestBadProviders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream func(func(llm.Event) bool)
		says   string
	}{
		"panics":       {func(func(llm.Event) bool) { panic("oh no") }, "the provider panicked: oh no"},
		"says nothing": {func(func(llm.Event) bool) {}, "the response ended without saying so"},
		"no terminal": {func(y func(llm.Event) bool) {
			y(llm.Event{Type: llm.EventTextStart})
			y(llm.Event{Type: llm.EventTextDelta, Delta: "part"})
		}, "the response ended without saying so"},
		"error without reason": {func(y func(llm.Event) bool) { y(llm.Event{Type: llm.EventError}) }, "the provider gave no reason"},
		"failed, says done": {func(y func(llm.Event) bool) {
			y(llm.Event{Type: llm.EventDone, Message: &llm.Message{StopReason: llm.StopError, ErrorMessage: "hidden"}})
		}, "hidden"},
	}
	for name, tt := range tests {
		k := newKit(t, func(o *agent.Options) {
			o.Provider, o.Retry.MaxAttempts = providerFunc(tt.stream), -1
		})
		err := k.prompt(t, "go")
		var failed *agent.ModelError
		if !errors.As(err, &failed) || failed.Message.ErrorMessage != tt.says || failed.Message.StopReason != llm.StopError {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
		k.checkGrammar(t)
	}
	sound := newKit(t, func(o *agent.Options) {
		o.Provider = providerFunc(func(y func(llm.Event) bool) {
			y(llm.Event{Type: llm.EventDone, Message: &llm.Message{Content: []llm.Block{
				{Type: llm.BlockToolCall, ID: "1", Name: "echo", Arguments: raw(`{"a`)},
			}, StopReason: llm.StopLength}})
			y(llm.Event{Type: llm.EventDone})
		})
		o.Hooks.FinishTurn = func(context.Context, agent.Turn) (agent.Action, error) { return agent.ActionEnd, nil }
	})
	if err := sound.prompt(t, "go"); err != nil {
		t.Error(err)
	}
	sound.checkGrammar(t)
}

type providerFunc func(func(llm.Event) bool)

func (f providerFunc) Stream(context.Context, llm.Request) iter.Seq[llm.Event] {
	return iter.Seq[llm.Event](f)
}

// TestOnEventPanics: the panic comes out of Prompt, and the agent is idle again.
func TestOnEventPanics(t *testing.T) {
	t.Parallel()
	for _, typ := range []agent.EventType{agent.EventMessageUpdate, agent.EventToolUpdate, agent.EventTurnEnd} {
		k := newKit(t, func(o *agent.Options) {
			o.Tools = []agent.Tool{tool{name: "t", run: func(_ context.Context, _ raw, up update) (result, error) {
				up(agent.TextResult("x"))
				return agent.TextResult("x"), nil
			}}}
		}, calls(llm.StopToolUse, "t {}"), says("r"))
		k.on = func(e agent.Event) error {
			if e.Type == typ {
				panic("a bug")
			}
			return nil
		}
		func() {
			defer func() {
				if v := recover(); v != "a bug" {
					t.Errorf("%s: recovered %v", typ, v)
				}
			}()
			t.Error(k.prompt(t, "go"))
		}()
		if k.Running() {
			t.Errorf("%s: still running", typ)
		}
	}
}

// TestProviderThatCleansUpForEver has sent its answer and does not come back.
func TestProviderThatCleansUpForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		k := newKit(t, func(o *agent.Options) {
			o.Provider = providerFunc(func(y func(llm.Event) bool) {
				b := llm.NewBuilder(llm.Message{}, y)
				b.Text("whole")
				b.Done(llm.StopEnd, nil)
				<-stop
			})
		})
		if err := k.prompt(t, "go"); err != nil {
			t.Error(err)
		}
		equal(t, "transcript", outline(k.Messages()), []string{"u:go", "a:whole"})
		close(stop)
		synctest.Wait()
	})
}
