package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sessions makes a folder with three sessions, as muntin and Pi lay them out, and
// what is none.
func sessions(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range []string{"a.jsonl", "b.jsonl", "--p--/c.jsonl"} {
		path := filepath.Join(dir, name)
		s, err := Open(path, Options{Dir: fmt.Sprint("/p", i), Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		say(t, s, user(fmt.Sprintf("question\n  %d %s", i, strings.Repeat("x", 300))))
		say(t, s, answer("b"))
		s.Close()
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "no.jsonl"), []byte("{}\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "empty.jsonl"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "x.txt"), []byte(head), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

func list(t *testing.T, dir string) []Info {
	t.Helper()
	infos, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := sessions(t)
	first := list(t, dir)
	if len(first) != 3 || first[0].Cwd != "/p2" || first[2].Cwd != "/p0" {
		t.Fatalf("got %+v", first)
	}
	if i := first[0]; i.Messages != 2 || !strings.HasPrefix(i.First, "question 2 xxx") || len(i.First) > firstLimit || i.Title() != i.First || i.Path != filepath.Join(dir, "--p--", "c.jsonl") || i.Created.IsZero() || i.Version != 3 {
		t.Errorf("got %+v", i)
	}
	if again := list(t, dir); !reflect.DeepEqual(again, first) {
		t.Errorf("from the index: %+v\nwas %+v", again, first)
	}
	// Only what was added is read: what stands before it could be anything.
	path := filepath.Join(dir, "a.jsonl")
	s := open(t, path)
	say(t, s, user("more"))
	if err := s.Rename("The name"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	grown := list(t, dir)
	if i := grown[0]; i.Messages != 3 || i.Title() != "The name" || !strings.HasPrefix(i.First, "question 0") {
		t.Errorf("got %+v", i)
	}
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if anew := list(t, dir); !reflect.DeepEqual(anew, grown) {
		t.Errorf("anew: %+v\nwas %+v", anew, grown)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if less := list(t, dir); len(less) != 2 {
		t.Errorf("got %+v", less)
	}
	if none, err := List(filepath.Join(dir, "missing")); err != nil || len(none) != 0 {
		t.Errorf("a missing folder: %v, %v", none, err)
	}
}

// A file that was put in the place of another one is read from its start.
func TestListSeesAnotherFile(t *testing.T) {
	t.Parallel()
	dir := sessions(t)
	list(t, dir)
	other := strings.Replace(head, `"id":"x"`, `"id":"other"`, 1) + strings.Repeat(msg("a", "", "user", "new"), 50)
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if i := list(t, dir)[0]; i.ID != "other" || i.First != "new" || i.Messages != 50 {
		t.Errorf("got %+v", i)
	}
}

func TestFindAndNewest(t *testing.T) {
	t.Parallel()
	dir := sessions(t)
	all := list(t, dir)
	if i, err := Find(dir, strings.ToLower(all[1].ID[:24])); err == nil && i.ID != all[1].ID {
		t.Errorf("got %+v", i)
	}
	if i, err := Find(dir, all[1].ID); err != nil || i.ID != all[1].ID {
		t.Errorf("got %+v, %v", i, err)
	}
	var many *AmbiguousError
	if _, err := Find(dir, all[0].ID[:4]); !errors.As(err, &many) || len(many.Among) != 3 || !strings.Contains(err.Error(), all[2].ID) {
		t.Errorf("got %v", err)
	}
	for _, ref := range []string{"", "zzz"} {
		if _, err := Find(dir, ref); !errors.Is(err, ErrNoSession) {
			t.Errorf("%q: got %v", ref, err)
		}
	}
	if i, err := Newest(dir, "/p1"); err != nil || i.Cwd != "/p1" {
		t.Errorf("got %+v, %v", i, err)
	}
	if _, err := Newest(dir, "/elsewhere"); !errors.Is(err, ErrNoSession) {
		t.Errorf("got %v", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(encodeIndex([]record{{rel: "a", Info: Info{ID: "x", Created: time.UnixMilli(5).UTC(), Size: -1}, head: 7, mod: 1 << 60}}))
	f.Add([]byte(indexMagic))
	f.Add(encodeIndex(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		records := decodeIndex(b)
		// With the right checksum, whatever it is.
		if len(b) > len(indexMagic) {
			body := append([]byte(indexMagic), b[len(indexMagic):]...)
			_ = decodeIndex(appendSum(body))
		}
		for _, r := range records {
			if again := decodeIndex(encodeIndex([]record{r})); !reflect.DeepEqual(again[r.rel], r) {
				t.Fatalf("%+v became %+v", r, again)
			}
		}
	})
}

// The look at a line finds what a whole decoder finds.
func FuzzFields(f *testing.F) {
	f.Add([]byte(msg("a", "b", "user", `x\"}]`)))
	f.Add([]byte(`{"a":{"b":[1,{"c":"\\"}]}, "d" : -1.5e3,"e":null}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"a":"\\\"","a":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		err := fields(b, func(key, value []byte) error {
			got[string(key)] = string(value)
			return nil
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil {
			return // what else it takes is found out by the decoder
		}
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		for key, value := range want {
			raw, _ := json.Marshal(key)
			if plain := string(raw[1 : len(raw)-1]); plain != key || strings.Contains(string(b), `\`) || strings.ToValidUTF8(string(b), "") != string(b) {
				continue // the key is written in another way than it reads
			}
			if got[key] != string(value) {
				t.Fatalf("%q: field %q is %q, want %q", b, key, got[key], value)
			}
		}
	})
}
