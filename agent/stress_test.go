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
	k := newKit(t, func(o *agent.Options) {
		o.Retry.BaseDelay = time.Millisecond
		o.Tools = append(o.Tools, tool{name: "slow", run: slow})
	}, randomReplies(random)...)
	others := startOthers(k)
	for range 5 {
		err := k.prompt(t, "go")
		var failed *agent.ModelError
		if err != nil && !errors.Is(err, agent.ErrAborted) && !errors.As(err, &failed) {
			t.Error(err)
		}
	}
	close(others.stop)
	others.all.Wait()
	k.checkGrammar(t)
	steering, followUp := k.Queued()
	found := others.cleared + len(steering) + len(followUp)
	for _, m := range k.Messages() {
		if m.Role == llm.RoleUser && m.Text() == "q" {
			found++
		}
	}
	if want := others.steered + others.followed; found != want {
		t.Errorf("%d queued messages found, want %d", found, want)
	}
	if n := len(k.find(agent.EventSettled)); n != 5 {
		t.Errorf("settled %d times, want 5", n)
	}
}

func randomReplies(random *rand.Rand) (replies []reply) {
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
	return replies
}

func slow(ctx context.Context, _ raw, up update) (result, error) {
	up(agent.TextResult("x"))
	select {
	case <-ctx.Done():
	case <-time.After(time.Millisecond):
	}
	return agent.TextResult("slow"), ctx.Err()
}

// others are goroutines that disturb an agent. Each counts for itself.
type others struct {
	stop                       chan struct{}
	all                        sync.WaitGroup
	steered, followed, cleared int
}

func startOthers(k *kit) *others {
	o := &others{stop: make(chan struct{})}
	for i, act := range []func(){
		func() { k.Steer(llm.UserText("q", 0)); o.steered++ },
		func() { k.FollowUp(llm.UserText("q", 0)); o.followed++ },
		func() {
			steering, followUp := k.ClearQueue()
			o.cleared += len(steering) + len(followUp)
		},
		func() { k.Abort(); k.Messages(); k.Running() },
	} {
		o.all.Go(func() {
			for {
				select {
				case <-o.stop:
					return
				case <-time.After(time.Duration(200+100*i) * time.Microsecond):
					act()
				}
			}
		})
	}
	return o
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
