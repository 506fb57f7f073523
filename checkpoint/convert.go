package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// A pending file has content that git may convert on its way in.
type pending struct {
	task      *task // its folder
	name      string
	path      string
	byContent bool          // false: only an attribute of the path can tell
	tracked   plumbing.Hash // the index's blob, which git looks at for text=auto
}

// convertAll replaces the hashes of pending files by those of their content
// as git stores it, and keeps the hash of the bytes on disk beside it. It
// lets git do it in an index of its own, since git's answer depends on
// attributes, configuration, filters, and for text=auto on the index's blob.
func (s *scan) convertAll(ctx context.Context, g *git, tempIndex string) error {
	list, err := g.withFilter(ctx, s.convert)
	if err != nil || len(list) == 0 {
		return err
	}
	return s.convertSome(ctx, g, tempIndex, list)
}

// withFilter keeps the files that git must see: those with telling content,
// and those whose attributes name a filter or an encoding.
func (g *git) withFilter(ctx context.Context, all []pending) ([]pending, error) {
	var ask bytes.Buffer
	for _, p := range all {
		if !p.byContent {
			ask.WriteString(p.path + "\x00")
		}
	}
	if ask.Len() == 0 {
		return all, nil
	}
	out, err := g.run(ctx, "", &ask, "check-attr", "-z", "--stdin", "filter", "working-tree-encoding")
	if err != nil {
		return nil, fmt.Errorf("reading attributes: %w", err)
	}
	wanted := map[string]bool{}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(fields); i += 3 { // path, attribute, value
		if v := fields[i+2]; v != "unspecified" && v != "unset" {
			wanted[fields[i]] = true
		}
	}
	var list []pending
	for _, p := range all {
		if p.byContent || wanted[p.path] {
			list = append(list, p)
		}
	}
	return list, nil
}

// convertSome converts files in one go. If git refuses, the ones it refuses
// are found by halves; these keep their bytes as they are and are reported.
func (s *scan) convertSome(ctx context.Context, g *git, tempIndex string, list []pending) error {
	hashes, err := s.gitAdd(ctx, g, tempIndex, list)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("converting contents: %w", err)
	}
	if err != nil && len(list) > 1 {
		half := len(list) / 2
		return errors.Join(s.convertSome(ctx, g, tempIndex, list[:half]), s.convertSome(ctx, g, tempIndex, list[half:]))
	}
	if err != nil {
		s.unconverted(list[0], err)
		return nil
	}
	for _, p := range list {
		e := p.task.node.find(p.name)
		h, ok := hashes[p.path]
		if e == nil {
			continue
		}
		if !ok { // it went away before git saw it
			e.racy = true
			s.unstable(p.path, "changed while it was read")
			continue
		}
		s.odb.written(s.odb.file(h))
		if h != e.hash {
			e.hash, e.raw = h, e.hash
		}
		if p.task.node.converted == nil {
			p.task.node.converted = map[string]plumbing.Hash{}
		}
		p.task.node.converted[p.name] = p.tracked
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(s.path, p.path), &st); err != nil || statKeyOf(&st) != e.stat {
			e.racy = true
			s.unstable(p.path, "changed while it was read")
		}
	}
	return nil
}

// unconverted notes a file that git could not convert. It is tried again every time.
func (s *scan) unconverted(p pending, err error) {
	p.task.node.again = true
	if e := p.task.node.find(p.name); e != nil {
		e.racy = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Unconverted = append(s.report.Unconverted, PathNote{Path: p.path, Why: "git could not convert it, saved as it is: " + err.Error()})
}

// gitAdd adds files to an index made for them and returns the hashes.
func (s *scan) gitAdd(ctx context.Context, g *git, tempIndex string, list []pending) (map[string]plumbing.Hash, error) {
	if err := os.Remove(tempIndex); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defer os.Remove(tempIndex)
	var seed, paths bytes.Buffer
	wanted := map[string]bool{}
	for _, p := range list {
		wanted[p.path] = true
		paths.WriteString(p.path + "\x00")
	}
	var copies map[plumbing.Hash]plumbing.Hash
	if s.adopt != nil {
		var err error
		if copies, err = s.adopt(ctx, wanted); err != nil {
			return nil, err
		}
	}
	for i := range s.index.at {
		e, path := s.index.entry(i), string(s.index.path(i))
		if wanted[path] || e.skipWorktree && strings.HasSuffix("/"+path, "/"+attrsName) {
			if copied, ok := copies[e.hash]; ok {
				e.hash = copied
			}
			fmt.Fprintf(&seed, "%o %s %d\t%s\x00", e.mode, e.hash, e.stage, path)
		}
	}
	plain := []string{"-c", "core.splitIndex=false", "-c", "core.untrackedCache=false", "-c", "index.sparse=false"}
	if seed.Len() > 0 {
		if _, err := g.run(ctx, tempIndex, &seed, append(plain, "update-index", "-z", "--index-info")...); err != nil {
			return nil, err
		}
	}
	if _, err := g.run(ctx, tempIndex, &paths, append(plain, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")...); err != nil {
		return nil, err
	}
	out, err := g.run(ctx, tempIndex, nil, append(plain, "ls-files", "-z", "-s")...)
	if err != nil {
		return nil, err
	}
	hashes := map[string]plumbing.Hash{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(head); len(f) == 3 && f[2] == "0" && wanted[path] {
			hashes[path] = plumbing.NewHash(f[1])
		}
	}
	return hashes, nil
}
