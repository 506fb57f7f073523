package pty

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"muntin/agent/adapter"
	"muntin/internal/durable"
)

// What is left is what the conversation of an outside agent says, as it stood
// when the supervisor before this one died, of the prompt that was given last.
type left struct {
	prompt string          // the last prompt in it
	end    adapter.Meaning // how its turn ended; MeansNothing: it did not
	why    string          // of an end that went wrong
	text   string          // the agent's last words in it
	used   adapter.Tokens
	counts bool
	at     time.Time // of the last line, by the file's own time
}

// leftBehind reads the conversation that is gone on with. ok is false where
// there is none to read.
func (s *supervisor) leftBehind() (l left, ok bool) {
	path := s.opt.Conversation.Transcript
	if path == "" && s.opt.Conversation.ID != "" {
		if found, _ := filepath.Glob(s.opt.Adapter.Transcripts(s.opt.Env, s.opt.Conversation.ID)); len(found) == 1 {
			path = found[0]
		}
	}
	info, err := os.Stat(path)
	if err != nil || s.opt.Adapter.Format == "" {
		return left{}, false
	}
	l.at = info.ModTime()
	reader := adapter.Reader{Format: s.opt.Adapter.Format}
	_, err = durable.Lines(path, 0, func(line []byte, _ int64) error {
		for _, rec := range reader.Line(line) {
			l.take(rec)
		}
		return nil
	})
	if err != nil {
		s.log.Warn("the conversation that was left cannot be read", "error", err)
	}
	return l, err == nil && l.prompt != ""
}

func (l *left) take(rec adapter.Record) {
	switch rec.Kind {
	case adapter.RecordPrompt:
		*l = left{prompt: rec.Text, at: l.at}
	case adapter.RecordText:
		l.text = rec.Text
	case adapter.RecordUsage:
		l.used.Add(*rec.Usage)
		l.counts = true
	case adapter.RecordTurn:
		switch {
		case ends(rec.Means):
			l.end, l.why = rec.Means, rec.Text
		case rec.Means == adapter.MeansWorking && l.end != adapter.MeansNothing:
			l.end = adapter.MeansNothing
		}
	case adapter.RecordTool:
	}
}

// of reports whether the message is the prompt that stands in it last. The file
// must have been written since the message was typed: the same words may have
// been said before.
func (l left) of(r record, typed time.Time) bool {
	same := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	return same(l.prompt) == same(cleanText(r.Text)) && !l.at.Before(typed.Truncate(time.Second))
}

// turnEnd is the end of its turn.
func (l left) turnEnd() TurnEndInfo {
	end := TurnEndInfo{Reason: TurnExited, Error: whyAccepted, Text: lastWords(l.text, maxLastWords), Source: adapter.ByTranscript}
	switch l.end {
	case adapter.MeansDone:
		end.Reason, end.Error = TurnDone, ""
	case adapter.MeansAborted:
		end.Reason, end.Error = TurnAborted, ""
	case adapter.MeansError, adapter.MeansLimited:
		end.Reason, end.Error = TurnError, clip(l.why, 512)
	case adapter.MeansNothing, adapter.MeansIdle, adapter.MeansWorking, adapter.MeansApproval, adapter.MeansQuestion, adapter.MeansLimit:
	}
	if l.counts {
		end.Usage = usageOf(l.used)
	}
	return end
}
