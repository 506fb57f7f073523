package checkpoint

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

func FuzzIndex(f *testing.F) {
	r := &repo{t: f, dir: f.TempDir()}
	r.git("init", "-q")
	r.write("a/b", "1")
	r.write("a/bc", "1")
	r.git("add", "-A")
	r.git("add", "-N", ".")
	for _, version := range []string{"2", "3", "4"} {
		r.git("update-index", "--index-version", version)
		b, err := os.ReadFile(r.path(".git/index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parseIndex(data)
		if err == nil && len(x.at) > len(data) {
			t.Error("more entries than bytes")
		}
	})
}

func FuzzTree(f *testing.F) {
	f.Add(encodeTree([]treeEntry{{name: "a", mode: modeFile}, {name: "b", mode: modeDir}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		again, err := parseTree(encodeTree(entries))
		if err != nil || len(again) != len(entries) {
			t.Errorf("%v, %d entries of %d", err, len(again), len(entries))
		}
	})
}

func FuzzCommit(f *testing.F) {
	f.Add("r", "a", "note\nwith lines", 3, 2)
	f.Add("", "\x00\xff", " \"", -1, 1)
	f.Fuzz(func(t *testing.T, run, agent, note string, turn, seq int) {
		if seq < 1 {
			return
		}
		r := record{tree: plumbing.NewHash("11"), previous: plumbing.NewHash("22"), head: plumbing.NewHash("33"), was: []plumbing.Hash{plumbing.NewHash("44"), plumbing.NewHash("55")}, seq: seq, files: 2,
			meta: Meta{Run: run, Agent: agent, Note: note, Turn: turn, Cause: CauseTurn}, time: time.Unix(1000, 0).UTC()}
		r.headName = r.head.String()
		r.hash = plumbing.ComputeHash(plumbing.CommitObject, r.encode())
		got, err := parseCommit(r.hash, r.encode())
		if err != nil || !reflect.DeepEqual(*got, r) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, r)
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree 1111111111111111111111111111111111111111\ncommitter a <b> 5 +0000\n\nx\n\nMuntin-Seq: 1\n"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseCommit(plumbing.ZeroHash, data) })
}

func FuzzCache(f *testing.F) {
	root := &node{ents: []ent{{name: "a", mode: modeFile, raw: plumbing.NewHash("11")}, {name: "d", mode: modeDir, dir: &node{}}},
		converted: map[string]plumbing.Hash{"a": {}}, key: statKey{mode: 1}}
	f.Add(string(putNode(nil, root)))
	f.Fuzz(func(_ *testing.T, data string) {
		n := packed(0, plumbing.ZeroHash)
		n.packed.data = data
		n.each("", func(string, *ent) {})
	})
}

func FuzzJournal(f *testing.F) {
	text := `{"version":3,"ref":"refs/muntin/r/a","undo":"1111111111111111111111111111111111111111","goal":"1111111111111111111111111111111111111111","target":"1111111111111111111111111111111111111111"}`
	f.Add([]byte(text), true)
	f.Add([]byte(text[:20]), false)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if whole {
			data = append(data, journalEnd(data)...)
		}
		if j, err := parseJournal(data); err == nil && j != nil && checkRef(j.Ref) != nil {
			t.Error("a bad ref was accepted")
		}
	})
}

func FuzzFindSpec(f *testing.F) {
	for _, s := range []string{"7", "#7", "turn:3", "latest", "abcd12", "turn:-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if w, err := parseSpec(spec); err == nil && !w.latest && w.id == 0 && w.turn == 0 && w.commit == "" {
			t.Errorf("%q means nothing", spec)
		}
	})
}
