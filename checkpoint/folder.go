package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"muntin/checkpoint/ignore"
)

// A listing is the names of one folder, sorted by their bytes.
type listing struct {
	slab  []byte
	names []listed
}

type listed struct {
	from, to int // in slab
	kind     nameKind
}

func (l *listing) name(i int) []byte { return l.slab[l.names[i].from:l.names[i].to] }

func (l *listing) has(name string) bool {
	_, found := slices.BinarySearchFunc(l.names, []byte(name), func(e listed, want []byte) int { return bytes.Compare(l.slab[e.from:e.to], want) })
	return found
}

// visit looks at one folder, sets its node, and returns the subfolders to look at next.
func (s *scan) visit(t *task, r *reader) ([]*task, error) {
	if t.old != nil {
		t.old.list() // if it comes from a file, all its fields are known only now
	}
	deep, dirty := s.dirty[t.path]
	t.full = t.full || deep
	if s.dirty != nil && !t.full && !dirty {
		if subs, ok := s.pass(t); ok {
			return subs, nil
		}
	}
	if s.watcher != nil {
		// Before the folder is read: what changes from now on is either read or reported.
		if err := s.watcher.Add(t.path); err != nil {
			s.unwatched(err)
		}
	}
	r.start = s.now()
	fd, err := openDir(s.root, t.path)
	if err != nil {
		return nil, s.folderError(t, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, s.folderError(t, err)
	}
	key := statKeyOf(&st)
	if subs, ok := s.keep(t, fd, key, r); ok {
		return subs, nil
	}
	return s.list(t, fd, key, r)
}

// unwatched notes that the watcher does not see everything.
func (s *scan) unwatched(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	s.report.Unwatched = err.Error()
}

// pass goes through a folder in which nothing changed on the way to others.
func (s *scan) pass(t *task) ([]*task, bool) {
	if t.old == nil || t.old.again || t.old.ignored != t.ignored {
		return nil, false
	}
	outer := *t
	s.enter(t, t.old.rules)
	if t.sig != t.old.scope || t.attrs.sig != t.old.attrs {
		*t = outer // the rules from outside the worktree changed
		return nil, false
	}
	t.node = t.old
	return s.subfolders(t), true
}

// subfolders are the tasks for the subfolders of a folder whose names are
// those of its old node.
func (s *scan) subfolders(t *task) []*task {
	var subs []*task
	ents := t.old.list()
	for i := range ents {
		e := &ents[i]
		if e.mode != modeDir {
			continue
		}
		sub := &task{path: join(t.path, e.name), name: e.name, parent: t, old: e.dir,
			scope: t.scope, sig: t.sig, attrs: t.attrs, ignored: e.dir.ignored, full: t.full}
		if s.touched(sub) {
			subs = append(subs, sub)
		}
	}
	return subs
}

// keep takes a folder's names from its old node, without listing it, if no
// name can have come or gone and if the same rules hold. Then only the files' stat data count.
func (s *scan) keep(t *task, fd int, key statKey, r *reader) ([]*task, bool) {
	old := t.old
	if s.all || old == nil || old.again || old.racy || old.key != key || old.ignored != t.ignored || s.relist[t.path] {
		return nil, false
	}
	var ru *rules
	if old.rules != nil {
		ru = s.readRules(fd, r, old.rules)
	}
	outer := *t
	s.enter(t, ru)
	if t.sig != old.scope || t.attrs.sig != old.attrs {
		*t = outer
		return nil, false
	}
	t.node = old
	if ru != old.rules {
		t.node = old.own()
		t.node.rules = ru
	}
	for i := range old.ents {
		e := &old.ents[i]
		if e.mode == modeDir {
			continue
		}
		st, err := lstatAt(fd, e.name)
		now := statKeyOf(&st)
		if err == nil && now == e.stat && !e.racy {
			continue
		}
		if err != nil || now.kind() != e.stat.kind() || !s.reread(t, fd, i, r) {
			*t = outer // a name went after all: look again
			return nil, false
		}
	}
	if t.again {
		t.node = t.node.own()
		t.node.again = true
	}
	return s.subfolders(t), true
}

// reread makes the i-th entry of t's folder anew, in a copy of its node.
func (s *scan) reread(t *task, fd, i int, r *reader) bool {
	t.node = t.node.own()
	e := &t.node.ents[i]
	delete(t.node.converted, e.name)
	f := file{task: t, dir: fd, name: e.name, old: &t.old.ents[i]}
	f.tracked = s.index.find(s.index.below(t.path), []byte(f.path()))
	fresh, ok := s.read(&f, r)
	*e = fresh
	return ok
}

// list reads a folder's names and decides about each.
func (s *scan) list(t *task, fd int, key statKey, r *reader) ([]*task, error) {
	racy := s.isRacy(key, r.start)
	l, err := r.list(fd)
	if err != nil {
		return nil, s.folderError(t, err)
	}
	t.node = &node{fresh: true, key: key, racy: racy}
	tracked := s.index.below(t.path)
	if t.path != "" && l.has(".git") {
		t.again = true // it can become a repository without a trace in this folder
		if tracked.from == tracked.to && s.nested(t) {
			return nil, nil
		}
	}
	var had *rules
	if t.old != nil {
		had = t.old.rules
	}
	t.node.rules = s.findRules(fd, r, had)
	s.enter(t, t.node.rules)
	t.node.scope, t.node.attrs, t.node.ignored = t.sig, t.attrs.sig, t.ignored
	c := contents{task: t, dir: fd, tracked: tracked, old: t.old}
	if t.old == nil || t.old.scope != t.sig || t.old.attrs != t.attrs.sig || t.old.ignored != t.ignored {
		t.full = true // other rules here, other rules below
	}
	if t.old != nil && t.old.attrs != t.attrs.sig {
		c.rehash = true // other rules of conversion: all hashes are open again
	}
	t.node.ents = make([]ent, 0, len(l.names))
	for i := range l.names {
		if err := s.name(&c, l.name(i), l.names[i].kind, r); err != nil {
			return nil, err
		}
	}
	t.node.again = t.again
	return c.subs, nil
}

// nested tells whether t's folder is a repository of its own. Its node says so.
func (s *scan) nested(t *task) bool {
	n, ok := openNested(filepath.Join(s.path, t.path))
	if !ok {
		return false
	}
	if !t.ignored { // an ignored one is only here because of a forced path, which it takes precedence over
		t.node.nested, t.node.hash = true, n.commit()
	}
	t.node.again = true
	return true
}

// contents is a folder while its names are gone through.
type contents struct {
	task    *task
	dir     int // open folder
	tracked span
	old     *node
	at      int  // place in old's entries: both are sorted
	rehash  bool // nothing is known about contents
	subs    []*task
}

// was returns the old entry of a name. Names must come in their order.
func (c *contents) was(name []byte) *ent {
	if c.old == nil {
		return nil
	}
	ents := c.old.ents
	for c.at < len(ents) && ents[c.at].name < string(name) {
		c.at++
	}
	if c.at < len(ents) && ents[c.at].name == string(name) {
		return &ents[c.at]
	}
	return nil
}

// name decides about one name of a folder: what it is in the snapshot.
func (s *scan) name(c *contents, raw []byte, kind nameKind, r *reader) error {
	if string(raw) == ".git" || s.conf.fold && bytes.EqualFold(raw, []byte(".git")) {
		return nil
	}
	was := c.was(raw)
	var name string
	if was != nil {
		name = was.name
	} else {
		name = string(raw)
	}
	if kind == kindUnknown {
		st, err := lstatAt(c.dir, name)
		if key := statKeyOf(&st); err == nil && key.isDir() {
			kind = kindDir
		}
	}
	t := c.task
	r.path = append(append(r.path[:0], t.path...), '/')
	if t.path == "" {
		r.path = r.path[:0]
	}
	r.path = append(r.path, name...)
	tracked := s.index.find(c.tracked, r.path)
	if kind == kindDir {
		s.folder(c, name, tracked, was)
		return nil
	}
	f := file{task: t, dir: c.dir, name: name, tracked: tracked}
	if tracked != nil && tracked.mode == modeGitlink {
		f.tracked = nil // it says nothing about a file's content
	}
	if tracked == nil && !s.forcedFile(&f) && (t.ignored || t.scope.Match(f.path(), false) == ignore.Ignored) {
		return nil
	}
	if dotGitLike(name) {
		s.skip(t, name, "git refuses this name")
		return nil
	}
	if f.tracked != nil && f.tracked.skipWorktree && !s.conf.sparse {
		return nil // overlay takes it from the index
	}
	if !c.rehash {
		f.old = was
	}
	if e, ok := s.read(&f, r); ok {
		t.node.ents = append(t.node.ents, e)
	}
	return nil
}

// forcedFile tells whether an untracked file counts as tracked. The next scan
// will not have it forced.
func (s *scan) forcedFile(f *file) bool {
	if len(s.forced) == 0 || !s.forced[f.path()] {
		return false
	}
	f.task.again = true
	return true
}

// folder decides about a subfolder.
func (s *scan) folder(c *contents, name string, tracked *indexEntry, was *ent) {
	t := c.task
	path := join(t.path, name)
	if dotGitLike(name) {
		if !t.ignored && t.scope.Match(path, true) != ignore.Ignored {
			s.skip(t, name, "git refuses this name")
		}
		return
	}
	if tracked != nil && tracked.mode == modeGitlink {
		e := ent{name: name, mode: modeGitlink, hash: tracked.hash}
		if n, ok := openNested(filepath.Join(s.path, path)); ok {
			if h := n.commit(); !h.IsZero() {
				e.hash = h
			}
		}
		t.again = true // its commit can change without a trace in this folder
		t.node.ents = append(t.node.ents, e)
		return
	}
	sub := &task{path: path, name: name, parent: t, scope: t.scope, sig: t.sig, attrs: t.attrs, ignored: t.ignored, full: t.full}
	if !sub.ignored {
		sub.ignored = t.scope.Match(path, true) == ignore.Ignored
	}
	if sub.ignored && !s.index.hasBelow(c.tracked, path) {
		if tracked != nil && s.becameNested(t, path) {
			return
		}
		if _, ok := s.forced[path]; !ok {
			return
		}
		t.again = true // the next scan will not have it forced
	}
	e := ent{name: name, mode: modeDir}
	if was != nil && was.dir != nil {
		sub.old, e.dir, e.hash = was.dir, was.dir, was.hash
		sub.full = sub.full || was.dir.ignored != sub.ignored
	}
	if s.dirty == nil || s.touched(sub) {
		c.subs = append(c.subs, sub)
	}
	t.node.ents = append(t.node.ents, e)
}

// becameNested adds a repository that took the place of a tracked file. It
// counts even if it is ignored, since the index has its path.
func (s *scan) becameNested(t *task, path string) bool {
	t.again = true // the folder can become a repository without a trace in its parent
	n, ok := openNested(filepath.Join(s.path, path))
	if !ok {
		return false
	}
	h := n.commit()
	if h.IsZero() {
		return false
	}
	t.node.ents = append(t.node.ents, ent{name: filepath.Base(path), mode: modeGitlink, hash: h})
	return true
}

// folderError decides about a folder that cannot be read: one that went away
// is no error, and one that we may not read is left out.
func (s *scan) folderError(t *task, err error) error {
	t.node = &node{fresh: true, ignored: t.ignored, again: true}
	switch {
	case t.path == "":
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		s.unstable(t.path, "changed while it was read")
	default:
		s.skip(t, "", reason(err))
	}
	return nil
}

// reason is the bare system error, for notes.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// list reads the names of an open folder. The listing is good until the next.
func (r *reader) list(fd int) (*listing, error) {
	l := &r.listing
	l.slab, l.names = l.slab[:0], l.names[:0]
	err := readNames(fd, r.dirents, func(name []byte, kind nameKind) {
		from := len(l.slab)
		l.slab = append(l.slab, name...)
		l.names = append(l.names, listed{from: from, to: len(l.slab), kind: kind})
	})
	slices.SortFunc(l.names, func(a, b listed) int { return bytes.Compare(l.slab[a.from:a.to], l.slab[b.from:b.to]) })
	return l, err
}
