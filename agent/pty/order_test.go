package pty

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muntin/internal/id"
)

// backwards makes n messages of one moment whose ids sort the wrong way round.
func backwards(n int) []Message {
	now := time.Now()
	out := make([]Message, n)
	for i := range out {
		out[i] = prompt(strings.Repeat("m", i+1))
		out[i].ID = id.New(now)
	}
	slices.SortFunc(out, func(x, y Message) int { return strings.Compare(y.ID, x.ID) })
	for i := range out {
		out[i].Text = strings.Repeat("m", i+1)
	}
	return out
}

// Messages of one millisecond keep their order, whether a supervisor took them
// and died or nobody did, and whatever their ids are.
func TestOrderAcrossRestart(t *testing.T) {
	t.Parallel()
	all := backwards(8)
	p, _ := runAgent(t, Options{})
	p.send(prompt("wait"), StateAccepted)
	c := p.client()
	for _, m := range all[:4] {
		if _, err := c.Send(testContext(t), m); err != nil {
			t.Fatal(err)
		}
	}
	p.cancel()
	p.wait()
	for _, m := range all[4:] {
		if err := Enqueue(p.dir, m); err != nil {
			t.Fatal(err)
		}
	}
	want := ids(all)
	list, err := Messages(p.dir)
	if err != nil || len(list) != 9 {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	var listed []string
	for _, m := range list[1:] {
		listed = append(listed, m.ID)
	}
	if !slices.Equal(listed, want) {
		t.Errorf("listed %q, want %q", listed, want)
	}
	second, log := runAgent(t, Options{Dir: p.dir})
	if info := second.send(all[7], StateDone); info.State != StateDone {
		t.Errorf("%+v", info)
	}
	var took []string
	for _, line := range lines(t, log) {
		took = append(took, strings.Fields(line)[0])
	}
	if !slices.Equal(took, want) {
		t.Errorf("the agent took %q, want %q", took, want)
	}
}

func ids(messages []Message) (out []string) {
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return out
}
