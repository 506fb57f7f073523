package pty

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"muntin/agent/adapter"
	"muntin/internal/durable"
)

const (
	// probeEvery is how often the transcript is read while a turn runs. At
	// rest nothing is read.
	probeEvery = time.Second
	// maxTurnText is how much of a turn's last answer is kept until its end.
	maxTurnText = 64 << 10
)

// A tail follows the transcript of an outside agent during its turns: what it
// tells of tools, usage, limits and of ends that nothing else tells of.
type tail struct {
	talk   Conversation
	reader adapter.Reader
	path   string // empty until it was found
	at     int64  // what was read of it
	bad    bool   // it could not be read: said once

	inTurn bool
	asked  bool           // a prompt has come that no end followed
	used   adapter.Tokens // and not told yet
	counts bool           // there was usage
	text   string         // the agent's last words in the turn
}

// begin is called when a turn begins: what is in the file by then belongs to
// the turns before. What they used and was written too late to be told with
// their end is told with the next, so that nothing is left out.
func (t *tail) begin() {
	t.inTurn = true
	t.read(func(adapter.Record) {})
	t.text = ""
}

// read gives what has come since the last call.
func (t *tail) read(each func(adapter.Record)) {
	if t.path == "" || t.bad {
		return
	}
	next, err := durable.Lines(t.path, t.at, func(line []byte, _ int64) error {
		for _, rec := range t.reader.Line(line) {
			t.take(rec)
			each(rec)
		}
		return nil
	})
	if err == nil {
		t.at = next
		return
	}
	t.bad = !errors.Is(err, os.ErrNotExist)
}

func (t *tail) take(rec adapter.Record) {
	switch {
	case rec.Kind == adapter.RecordPrompt:
		t.asked = true
	case rec.Kind == adapter.RecordText:
		t.text = lastWords(rec.Text, maxTurnText)
	case rec.Kind == adapter.RecordUsage && rec.Usage != nil:
		t.used.Add(*rec.Usage)
		t.counts = true
	}
}

// follow goes on with that file. What is in it now is of earlier turns, unless
// it has come up in this one.
func (t *tail) follow(path string) {
	if path == t.path {
		return
	}
	t.path, t.at, t.bad = path, 0, false
	if !t.inTurn {
		if info, err := os.Stat(path); err == nil {
			t.at = info.Size()
			t.reader.Later = t.at > 0
		}
	}
}

// sofar is what was used and not told with a turn's end yet; nil if nothing is
// known.
func (t *tail) sofar() *Usage {
	if !t.counts {
		return nil
	}
	return usageOf(t.used)
}

func usageOf(u adapter.Tokens) *Usage {
	return &Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Cost: u.Cost}
}

// usage is the same, and it is told now.
func (t *tail) usage() *Usage {
	u := t.sofar()
	t.used, t.counts = adapter.Tokens{}, false
	return u
}

// probing is called after each look: it follows the turns, and has the
// transcript read while one runs.
func (s *supervisor) probing() {
	if s.opt.Adapter.Format == "" {
		return
	}
	running := s.watch.mode == watchAnswer || s.watch.mode == watchTurn || s.watch.mode == watchReady && s.watch.id != ""
	switch {
	case running && !s.tail.inTurn:
		s.tail.begin()
		s.probe.Reset(probeEvery)
	case !running && s.tail.inTurn:
		s.tail.inTurn, s.tail.asked = false, false
		s.probe.Stop()
	}
}

// probed reads what has come to the transcript in the running turn.
func (s *supervisor) probed() {
	if !s.tail.inTurn || s.m.exited {
		return
	}
	s.readTranscript()
	s.probe.Reset(probeEvery)
}

func (s *supervisor) readTranscript() {
	s.findTranscript()
	s.tail.read(func(rec adapter.Record) {
		switch rec.Kind {
		case adapter.RecordTool:
			s.apply(s.m.tool(ToolInfo{Name: rec.Tool, Summary: rec.Text}))
		case adapter.RecordTurn:
			// That it has begun is told by what is faster. An end without a
			// prompt before it is that of the turn before, written late.
			if s.tail.asked && rec.Means != adapter.MeansWorking {
				s.cues.add(cue{kind: adapter.SignalFile, text: string(rec.Means), note: rec.Text, at: s.term.output.Load() + 1})
			}
		case adapter.RecordPrompt, adapter.RecordText:
			s.say(rec.Text)
		case adapter.RecordUsage:
		}
	})
}

// findTranscript looks for the conversation's file: by the id, or where none
// is known yet, by its being held open by the agent. It is never guessed.
func (s *supervisor) findTranscript() {
	if s.tail.path != "" {
		return
	}
	id := s.tail.talk.ID
	pattern := s.opt.Adapter.Transcripts(s.opt.Env, id)
	var found []string
	switch {
	case pattern == "":
		return
	case id != "":
		found, _ = filepath.Glob(pattern) // it has no bad pattern
	case s.opt.Adapter.OpenFile:
		for _, path := range s.child.openFiles() {
			if ok, _ := filepath.Match(pattern, path); ok {
				found = append(found, path)
			}
		}
	}
	if len(found) != 1 {
		return
	}
	if id == "" {
		id = adapter.ConversationOf(found[0])
	}
	s.learned(Conversation{ID: id, Transcript: found[0]})
}

// learned takes note of the agent's conversation and keeps it.
func (s *supervisor) learned(c Conversation) {
	if c.Transcript == "" && c.ID == s.tail.talk.ID {
		c.Transcript = s.tail.talk.Transcript
	}
	if c.ID == "" || c.ID == s.tail.talk.ID && c.Transcript == s.tail.talk.Transcript {
		return
	}
	if c.Transcript != "" {
		s.tail.follow(c.Transcript)
	}
	s.tail.talk = c
	if err := WriteConversation(s.opt.Dir, c); err != nil {
		s.log.Error("the conversation is not kept", "error", err)
	}
}

// fill adds what the transcript tells of the turn that has ended.
func (s *supervisor) fill(end *TurnEndInfo) {
	if s.opt.Adapter.Format == "" || !s.tail.inTurn && s.tail.path == "" {
		return
	}
	s.readTranscript()
	if end.Usage == nil {
		end.Usage = s.tail.usage()
	}
	if end.Text == "" {
		end.Text = s.tail.text
	}
	if end.Reason == TurnError && end.Error == "" {
		end.Error = s.tail.text
	}
}
