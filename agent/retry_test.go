package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"muntin/agent"
	"muntin/agent/llm"
)

func busy(after time.Duration) reply {
	return fails(&llm.Error{Class: llm.ClassRetryable, Status: 529, Message: "overloaded", RetryAfter: after})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replies []reply
		policy  agent.RetryPolicy
		waits   []time.Duration
		err     llm.Class // "" for success
	}{
		"doubles":           {[]reply{busy(0), busy(0), busy(0), says("r")}, agent.RetryPolicy{}, []time.Duration{2e9, 4e9, 8e9}, ""},
		"gives up":          {[]reply{busy(0), busy(0), busy(0), busy(0)}, agent.RetryPolicy{}, []time.Duration{2e9, 4e9, 8e9}, llm.ClassRetryable},
		"never":             {[]reply{busy(0)}, agent.RetryPolicy{MaxAttempts: -1}, nil, llm.ClassRetryable},
		"capped":            {[]reply{busy(0), busy(0), busy(0), says("r")}, agent.RetryPolicy{MaxDelay: 3e9}, []time.Duration{2e9, 3e9, 3e9}, ""},
		"asked for":         {[]reply{busy(7e9), says("r")}, agent.RetryPolicy{}, []time.Duration{7e9}, ""},
		"asked for less":    {[]reply{busy(1e9), says("r")}, agent.RetryPolicy{}, []time.Duration{2e9}, ""},
		"asked for an hour": {[]reply{busy(time.Hour)}, agent.RetryPolicy{}, nil, llm.ClassRetryable},
		"counts anew": {
			[]reply{busy(0), calls(llm.StopToolUse, "echo {}"), busy(0), says("r")}, agent.RetryPolicy{MaxAttempts: 1},
			[]time.Duration{2e9, 2e9}, "",
		},
		"auth":  {[]reply{fails(&llm.Error{Class: llm.ClassAuth})}, agent.RetryPolicy{}, nil, llm.ClassAuth},
		"other": {[]reply{fails(errors.New("boo"))}, agent.RetryPolicy{}, nil, llm.ClassOther},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			tt.policy.Rand = func() float64 { return 0 }
			k := newKit(t, func(o *agent.Options) { o.Retry = tt.policy }, tt.replies...)
			var waits []time.Duration
			var at time.Time
			k.on = func(e agent.Event) error {
				switch {
				case e.Type == agent.EventRetry:
					at = time.Now()
				case e.Type == agent.EventAgentStart && !at.IsZero():
					waits = append(waits, time.Since(at))
				}
				return nil
			}
			err := k.prompt(t, "go")
			var failed *agent.ModelError
			if tt.err == "" && err != nil || tt.err != "" && (!errors.As(err, &failed) || llm.Classify(err) != tt.err) {
				t.Errorf("%s: error %v, want class %q", name, err, tt.err)
			}
			if fmt.Sprint(waits) != fmt.Sprint(tt.waits) {
				t.Errorf("%s: waits %v, want %v", name, waits, tt.waits)
			}
			ends := k.find(agent.EventAgentEnd)
			for i, e := range ends {
				if e.WillRetry != (i < len(tt.waits)) {
					t.Errorf("%s: agent_end %d of %d: willRetry %v", name, i, len(ends), e.WillRetry)
				}
			}
			if got := k.find(agent.EventSettled); len(got) != 1 || got[0].Aborted {
				t.Errorf("%s: settled %+v", name, got)
			}
			if over := k.find(agent.EventRetryEnd); len(tt.waits) > 0 && (len(over) == 0 || over[len(over)-1].Success != (tt.err == "")) {
				t.Errorf("%s: auto_retry_end %+v", name, over)
			}
			k.checkGrammar(t)
		})
	}
}

// TestRetryRequest: the failed response stays in the transcript and is not sent.
func TestRetryRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil, busy(0), says("r"))
		if err := k.prompt(t, "go"); err != nil {
			t.Fatal(err)
		}
		equal(t, "transcript", outline(k.Messages()), []string{"u:go", "a:!error", "a:r"})
		equal(t, "request", outline(k.provider.sent()[1].Messages), []string{"u:go"})
		equal(t, "events", k.types(), []string{
			"agent_start", "turn_start", "message_start user", "message_end user",
			"message_start assistant", "message_end assistant", "turn_end", "agent_end", "auto_retry_start",
			"agent_start", "turn_start", "message_start assistant", "message_end assistant", "auto_retry_end", "turn_end",
			"agent_end", "agent_settled",
		})
		start := k.find(agent.EventRetry)[0]
		if start.Attempt != 1 || start.MaxAttempts != 3 || start.DelayMS != 2000 || start.Error != "getting a response: HTTP 529: overloaded" {
			t.Errorf("auto_retry_start %+v", start)
		}
	})
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	overflow := fails(&llm.Error{Class: llm.ClassOverflow, Message: "too long"})
	short := []llm.Message{llm.UserText("summary", 1)}
	tests := map[string]struct {
		replies []reply
		hook    func(context.Context, error, []llm.Message) ([]llm.Message, error)
		want    []string
		fails   bool
	}{
		"no hook":  {[]reply{overflow}, nil, []string{"u:go", "a:!error"}, true},
		"shortens": {[]reply{overflow, says("r")}, always(short, nil), []string{"u:summary", "a:r"}, false},
		"gives up": {[]reply{overflow}, always(nil, nil), []string{"u:go", "a:!error"}, true},
		"fails":    {[]reply{overflow}, always(short, errors.New("no room")), []string{"u:go", "a:!error"}, true},
		"only once": {
			[]reply{overflow, overflow}, always(short, nil), []string{"u:summary", "a:!error"}, true,
		},
		"once more after an answer": {
			[]reply{overflow, calls(llm.StopToolUse, "echo {}"), overflow, says("r")}, always(short, nil),
			[]string{"u:summary", "a:r"}, false,
		},
	}
	for name, tt := range tests {
		k := newKit(t, func(o *agent.Options) { o.Hooks.Overflow = tt.hook }, tt.replies...)
		err := k.prompt(t, "go")
		if (err != nil) != tt.fails || err != nil && llm.Classify(err) != llm.ClassOverflow {
			t.Errorf("%s: error %v", name, err)
		}
		equal(t, name, outline(k.Messages()), tt.want)
		if n := len(k.find(agent.EventRetry)); n != 0 {
			t.Errorf("%s: %d retries after a wait", name, n)
		}
		k.checkGrammar(t)
	}
}

func always(ms []llm.Message, err error) func(context.Context, error, []llm.Message) ([]llm.Message, error) {
	return func(context.Context, error, []llm.Message) ([]llm.Message, error) { return ms, err }
}

func TestTurnHooks(t *testing.T) {
	t.Parallel()
	turns := 0
	k := newKit(t, nil)
	change := func(o *agent.Options) {
		o.Hooks = agent.Hooks{
			PrepareTurn: func(_ context.Context, ms []llm.Message) ([]llm.Message, error) {
				if turns++; turns == 2 {
					k.Steer(llm.UserText("while compacting", 0))
					return []llm.Message{llm.UserText("summary", 1)}, nil
				}
				return nil, nil
			},
			TransformContext: func(_ context.Context, ms []llm.Message) ([]llm.Message, error) {
				return append(ms[:len(ms):len(ms)], llm.UserText("only sent", 1)), nil
			},
			FinishTurn: func(_ context.Context, turn agent.Turn) (agent.Action, error) {
				if turn.Message.Text() == "r1" {
					return agent.ActionContinue, nil
				}
				return agent.ActionEnd, nil
			},
		}
	}
	k = newKit(t, change, says("r1"), calls(llm.StopToolUse, "echo {}"))
	k.FollowUp(llm.UserText("kept", 0))
	if err := k.prompt(t, "go"); err != nil {
		t.Fatal(err)
	}
	equal(t, "transcript", outline(k.Messages()), []string{"u:summary", "u:while compacting", "a:(echo)", "t:{}"})
	equal(t, "request", outline(k.provider.sent()[1].Messages), []string{"u:summary", "u:while compacting", "u:only sent"})
	if _, followUp := k.Queued(); len(followUp) != 1 {
		t.Error("ActionEnd took from the queue")
	}
	k.checkGrammar(t)
}

func TestHookErrors(t *testing.T) {
	t.Parallel()
	// Even a retryable error of a hook is no reason to ask the model again.
	no := &llm.Error{Class: llm.ClassRetryable, Message: "no"}
	tests := map[string]agent.Hooks{
		"preparing the turn: no":       {PrepareTurn: func(context.Context, []llm.Message) ([]llm.Message, error) { return nil, no }},
		"transforming the context: no": {TransformContext: func(context.Context, []llm.Message) ([]llm.Message, error) { return nil, no }},
		"finishing the turn: no":       {FinishTurn: func(context.Context, agent.Turn) (agent.Action, error) { return 0, no }},
	}
	for says1, hooks := range tests {
		k := newKit(t, func(o *agent.Options) { o.Hooks = hooks }, says("r"))
		err := k.prompt(t, "go")
		var failed *agent.ModelError
		if !errors.As(err, &failed) || failed.Err.Error() != says1 {
			t.Errorf("error %v, want %q", err, says1)
		}
		if n := len(k.find(agent.EventAgentEnd)); n != 1 {
			t.Errorf("%s: %d attempts", says1, n)
		}
		k.checkGrammar(t)
	}
}
