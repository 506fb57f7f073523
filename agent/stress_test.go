package agent_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
)

// TestStress has many goroutines use an agent at once while it makes runs. After
// each run the events must have kept their order, and nothing is lost: each
// message that was queued is in the transcript, in a queue, or was cleared.
func TestStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		stress(t, rand.New(rand.NewPCG(seed, 1)))
	}
}

func stress(t *testing.T, random *rand.Rand) {
	t.Helper()
	var replies []reply
	for range 200 {
		switch random.IntN(6) {
		case 0:
			replies = append(replies, calls(llm.StopToolUse, "echo {}", "slow {}", "nope {}"))
		case 1:
			replies = append(replies, fails(&llm.Error{Class: llm.ClassRetryable, Message: "overloaded"}))
		case 2:
			replies = append(replies, calls(llm.StopLength, "echo {}"))
		case 3:
			replies = append(replies, hangsShort)
		default:
			replies = append(replies, says("r"))
		}
	}
	k := newKit(t, func(o *agent.Options) {
		o.Retry.BaseDelay = time.Millisecond
		o.Tools = append(o.Tools, tool{name: "slow", run: func(ctx context.Context, _ raw, up update) (result, error) {
			up(agent.TextResult("x"))
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			return agent.TextResult("slow"), ctx.Err()
		}})
	}, replies...)
	stop := make(chan struct{})
	var others sync.WaitGroup
	queued := make([]int, 4)
	cleared := 0
	for i := range queued {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(200+100*i) * time.Microsecond):
				}
				switch i {
				case 0:
					k.Steer(llm.UserText("q", 0))
					queued[i]++
				case 1:
					k.FollowUp(llm.UserText("q", 0))
					queued[i]++
				case 2:
					steering, followUp := k.ClearQueue()
					cleared += len(steering) + len(followUp)
				case 3:
					k.Abort()
					k.Messages()
					k.Running()
				}
			}
		})
	}
	for range 5 {
		err := k.prompt(t, "go")
		var failed *agent.ModelError
		if err != nil && !errors.Is(err, agent.ErrAborted) && !errors.As(err, &failed) {
			t.Error(err)
		}
	}
	close(stop)
	others.Wait()
	k.checkGrammar(t)
	steering, followUp := k.Queued()
	found := cleared + len(steering) + len(followUp)
	for _, m := range k.Messages() {
		if m.Role == llm.RoleUser && m.Text() == "q" {
			found++
		}
	}
	if want := queued[0] + queued[1]; found != want {
		t.Errorf("%d queued messages found, want %d", found, want)
	}
	if n := len(k.find(agent.EventSettled)); n != 5 {
		t.Errorf("settled %d times, want 5", n)
	}
}

func hangsShort(ctx context.Context, b *llm.Builder) {
	b.Text("first")
	select {
	case <-ctx.Done():
		b.Fail(ctx.Err(), nil)
	case <-time.After(time.Millisecond):
		b.Done(llm.StopEnd, nil)
	}
}

// BenchmarkKernelEvents measures one streamed event through the whole kernel.
func BenchmarkKernelEvents(b *testing.B) {
	const perRun = 10_000
	stream := func(_ context.Context, out *llm.Builder) {
		for range perRun {
			out.Text("word ")
		}
		out.Done(llm.StopEnd, nil)
	}
	events := 0
	provider := &fake{}
	a, err := agent.New(agent.Options{
		Provider: provider, Model: "m",
		OnEvent: func(context.Context, agent.Event) error { events++; return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		provider.replies = append(provider.replies, stream)
		if err := a.SetMessages(nil); err != nil {
			b.Fatal(err)
		}
		if err := a.Prompt(b.Context(), llm.UserText("go", 1)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
