package tmux_test

import (
	"strings"
	"testing"

	"muntin/tmux"
	"muntin/tmux/tmuxtest"
)

// payloads are what people and programs send to agents, and what tmux, a
// shell or a terminal could take for something else. paste is what arrives of
// it by a paste; "=": all of it.
func payloads() []struct{ name, text, paste string } {
	var all strings.Builder
	for i := range 256 {
		all.WriteByte(byte(i))
	}
	return []struct{ name, text, paste string }{
		{"word", "hello", "="},
		{"semicolon at the end", "A=x;", "="},
		{"semicolon", ";", "="},
		{"escaped semicolon", `C\;`, "="},
		{"two semicolons", ";;", "="},
		{"dash", "-dash", "="},
		{"dashes", "--", "="},
		{"key name", "Enter", "="},
		{"key names", "C-c Escape Up", "="},
		{"quotes", `"it's" 'so'`, "="},
		{"variables", "$HOME ${HOME} $(id) `id`", "="},
		{"tilde", "~ ~root", "="},
		{"job", "#(id) ##(id) #{pid} #[fg=red]", "="},
		{"time", "%H %% %1 %output", "="},
		{"backslashes", `\ \\ \n \001 \`, "="},
		{"braces", "{ } %if 1 %endif", "="},
		{"lines", "a\nb\n\nc\n", "="},
		{"carriage returns", "a\r\nb\rc", "a\nb\nc"},
		{"tab", "\ta\tb", "="},
		{"accents", "é ü ß 日本語", "="},
		{"emoji", "👩‍👩‍👧 🇩🇪 👍🏽", "="},
		{"not UTF-8", "a\xffb\xc3", "ab"},
		{"NUL", "a\x00b", "ab"},
		{"control characters", "a\x01\x03\x04\x08\x1a\x7fb", "ab"},
		{"end of a paste", "a\x1b[201~b", "a[201~b"},
		{"every byte", all.String(), "="},
		{"long", strings.Repeat("0123456789 é;\n", 700), "="},
	}
}

// Every payload arrives by keys as it is, and by a paste as text: bracketed,
// and without what is none.
func TestDelivery(t *testing.T) {
	t.Parallel()
	tmuxtest.Each(t, func(t *testing.T, s *tmux.Server) {
		ref, file := recorder(t, s, true)
		var want strings.Builder
		for _, p := range payloads() {
			pasted := p.paste
			switch {
			case p.name == "every byte":
				pasted = everyByteAsText()
			case pasted == "=":
				pasted = p.text
			}
			if err := s.SendKeys(t.Context(), ref, []byte(p.text)); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			if err := s.Paste(t.Context(), ref, p.text); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			want.WriteString(p.text + "\x1b[200~" + pasted + "\x1b[201~")
		}
		waitFile(t, file, want.String())
	})
}

// everyByteAsText is what text there is in the 256 bytes: TAB, the two line
// ends, and printable ASCII.
func everyByteAsText() string {
	text := "\t\n\n"
	for c := byte(0x20); c < 0x7f; c++ {
		text += string(c)
	}
	return text
}
