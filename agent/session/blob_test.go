package session

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"muntin/agent/llm"
)

func large() llm.Message {
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("picture!", 4000)))
	details, _ := json.Marshal(map[string]string{"diff": strings.Repeat("+ a line\n", 20_000)}) // strings always encode
	return llm.Message{
		Role: llm.RoleTool, ToolCallID: "c1", ToolName: "read", Timestamp: 3, Details: details,
		Content: []llm.Block{
			{Type: llm.BlockText, Text: "small"},
			{Type: llm.BlockImage, Data: image, MimeType: "image/png"},
			{Type: llm.BlockText, Text: strings.Repeat("grüße ", 20_000)},
		},
	}
}

func withLarge(t *testing.T, path string) *Session {
	t.Helper()
	s := open(t, path)
	say(t, s, user("x"))
	call := answer("")
	call.Content = []llm.Block{{Type: llm.BlockToolCall, ID: "c1", Name: "read", Arguments: json.RawMessage(`{}`)}}
	say(t, s, call)
	say(t, s, large())
	return s
}

func TestLargePiecesAreKeptBesideTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	s := withLarge(t, path)
	say(t, s, large()) // it answers no call, and stores nothing anew
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if err != nil || len(blobs) != 3 {
		t.Fatalf("blobs %v, %v", blobs, err)
	}
	if size := len(bytesOf(t, path)); size > 20_000 {
		t.Errorf("the file has %d bytes", size)
	}
	s.Close()
	s = open(t, path)
	if got := s.Messages()[2]; !reflect.DeepEqual(got, large()) {
		t.Errorf("it came back as %.300v", got)
	}
	// Pi sees texts that say where the pieces are.
	var plain []string
	for _, line := range strings.Split(string(bytesOf(t, path)), "\n") {
		var e struct {
			Message struct {
				Role    string
				Content []struct{ Type, Text string }
			}
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Message.Role == "toolResult" {
			for _, b := range e.Message.Content {
				plain = append(plain, b.Type+" "+b.Text)
			}
			break
		}
	}
	if len(plain) != 3 || !strings.Contains(plain[1], "text [An image, image/png, 32000 bytes: it is in blobs/") || !strings.Contains(plain[2], "[The whole text, ") || !strings.HasPrefix(plain[2], "text grüße") {
		t.Errorf("got %.300q", plain)
	}
}

func TestLostAndDamagedBlobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	withLarge(t, path).Close()
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if strings.HasSuffix(b, ".txt") {
			err = os.WriteFile(b, []byte("something else"), 0o600)
		} else {
			err = os.Remove(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, path)
	m := s.Messages()
	if len(m) != 3 || !strings.HasPrefix(m[2].Content[1].Text, "[An image") {
		t.Errorf("got %.300v", m)
	}
	problems := s.Problems()
	if len(problems) != 3 || problems[0].Line != 4 {
		t.Errorf("problems %v", problems)
	}
}

// A reference in a foreign file leads nowhere else.
func TestBlobNamesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := blobs{dir: filepath.Join(dir, "blobs")}
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := b.put([]byte("x"), "txt")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.get(name); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"../secret.txt", "", ".", name + "/../x", strings.ToUpper(name), "../" + name} {
		if _, err := b.get(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestForkTakesBlobsAlong(t *testing.T) {
	t.Parallel()
	s := withLarge(t, filepath.Join(t.TempDir(), "s.jsonl"))
	for name, inline := range map[string]bool{"copied": false, "inline": true} {
		dir := t.TempDir()
		to := filepath.Join(dir, "f.jsonl")
		if err := s.Fork(ForkOptions{Path: to, Inline: inline}); err != nil {
			t.Fatal(err)
		}
		f := open(t, to)
		if got := f.Messages()[2]; !reflect.DeepEqual(got, large()) {
			t.Errorf("%s: it came back as %.200v", name, got)
		}
		if _, err := os.Stat(filepath.Join(dir, "blobs")); (err == nil) == inline {
			t.Errorf("%s: the folder of blobs: %v", name, err)
		}
	}
}
