package export_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muntin/agent/llm"
	"muntin/agent/session"
	"muntin/agent/session/export"
)

const nasty = "<script>alert(1)</script> & \"quotes\" ```\n```` \x1b[31mred\x1b]0;title\x07 </pre><img src=http://evil/x>"

func made(t *testing.T) *session.Session {
	t.Helper()
	s, err := session.Open(filepath.Join(t.TempDir(), "s.jsonl"), session.Options{Dir: "/p/<dir>"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	args, err := json.Marshal(map[string]string{"command": nasty})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []llm.Message{
		llm.UserText("please\r\nlook "+nasty, 1),
		{Role: llm.RoleAssistant, Model: "m<b>", StopReason: llm.StopToolUse, Content: []llm.Block{
			{Type: llm.BlockThinking, Thinking: "hm"}, {Type: llm.BlockText, Text: "I *will*"},
			{Type: llm.BlockToolCall, ID: "c", Name: "bash", Arguments: args},
		}},
		{Role: llm.RoleTool, ToolCallID: "c", ToolName: "bash", IsError: true, Content: []llm.Block{
			{Type: llm.BlockText, Text: nasty},
			{Type: llm.BlockImage, MimeType: "image/png", Data: "iVBORw0KGgo="},
			{Type: llm.BlockImage, MimeType: "image/svg+xml", Data: "PHN2Zy8+"},
			{Type: llm.BlockImage, MimeType: "image/png", Data: `"><script>`},
		}},
	} {
		if _, err := s.AppendMessage(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rename("Name <i>"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHTML(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := export.HTML(&b, made(t)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{
		"<title>Name &lt;i&gt;</title>", "&lt;script&gt;alert(1)&lt;/script&gt;", "prefers-color-scheme:dark", "default-src 'none'",
		`<img alt="" src="data:image/png;base64,iVBORw0KGgo=">`, "image/svg+xml that is not shown", "Result of bash, an error", "<summary>Thinking</summary>",
		"<dd>/p/&lt;dir&gt;</dd>", "please\nlook",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	// Nothing of the conversation became a tag, and nothing leads elsewhere.
	for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(page, -1) {
		if regexp.MustCompile(`(?i)script|href|http:|https:|url\(|\son`).MatchString(tag) {
			t.Errorf("the page has the tag %s", tag)
		}
	}
	if strings.Contains(page, "\x1b") || strings.Contains(page, "url(") || strings.Contains(page, "@import") {
		t.Error("the page has an escape or a resource")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := export.Markdown(&b, made(t)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, part := range []string{"# Name \\<i>\n", "## User\n", "## Assistant (m\\<b>)\n", "\n`````text\n<script>", "*[an image, image/png, under 1 KB]*"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	if strings.Contains(page, "\x1b") {
		t.Error("the page has an escape")
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return len(p), nil
}

func TestWriteErrorIsTold(t *testing.T) {
	t.Parallel()
	if err := export.HTML(&full{left: 500}, made(t)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
