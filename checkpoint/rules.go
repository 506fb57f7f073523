package checkpoint

import (
	"muntin/checkpoint/ignore"
)

const (
	ignoreName = ".gitignore"
	attrsName  = ".gitattributes"

	maxRules = 64 << 20 // bytes of a rule file that are read
)

// rules are the rule files of one folder. They are not changed once made.
type rules struct {
	ignore, attrs ruleFile
}

// A ruleFile is what a .gitignore or .gitattributes says.
type ruleFile struct {
	there bool
	racy  bool
	stat  statKey // zero: not read yet
	sum   uint64  // of its content
	list  *ignore.List
	flags convFlags
}

// findRules reads the rule files among the names of a folder.
func (s *scan) findRules(fd int, r *reader, old *rules) *rules {
	want := rules{}
	if old != nil {
		want = *old
	}
	want.ignore = want.ignore.as(r.listing.has(ignoreName))
	want.attrs = want.attrs.as(r.listing.has(attrsName))
	switch {
	case want == rules{}:
		return nil
	case old != nil && want == *old:
		return s.readRules(fd, r, old)
	}
	return s.readRules(fd, r, &want)
}

// as is f if the file is there, known or not, else nothing.
func (f ruleFile) as(there bool) ruleFile {
	if !there {
		return ruleFile{}
	}
	f.there = true
	return f
}

// readRules reads a folder's rule files again if they are not as they were.
// It returns old itself if nothing changed.
func (s *scan) readRules(fd int, r *reader, old *rules) *rules {
	now := rules{ignore: s.readRule(fd, r, ignoreName, old.ignore), attrs: s.readRule(fd, r, attrsName, old.attrs)}
	if now == *old {
		return old
	}
	return &now
}

// readRule reads a rule file of an open folder. Symlinks are not followed,
// as in git. Unreadable rules are no rules, as in git; the file itself is reported.
func (s *scan) readRule(fd int, r *reader, name string, old ruleFile) ruleFile {
	if !old.there {
		return old
	}
	st, err := lstatAt(fd, name)
	key := statKeyOf(&st)
	if err == nil && key == old.stat && !old.racy {
		return old
	}
	now := ruleFile{there: true, stat: key}
	if err != nil || !key.isRegular() {
		now.racy = true
		return now
	}
	content, before, after, err := r.file(fd, name, maxRules)
	if err != nil {
		now.racy = true
		return now
	}
	now.stat, now.racy, now.sum = before, before != after || s.isRacy(before, r.start), sum(content)
	if name == ignoreName {
		now.list = ignore.Parse(content, s.conf.fold)
	} else {
		now.flags = attrFlags(content)
	}
	return now
}

// enter sets the rules for the entries of t's folder: those from above, and
// its own. A rule file that is not checked out comes from the index.
func (s *scan) enter(t *task, ru *rules) {
	var own rules
	if ru != nil {
		own = *ru
	}
	if len(s.hiddenFile) > 0 {
		if c, ok := s.hiddenFile[join(t.path, ignoreName)]; ok && !own.ignore.there {
			own.ignore = ruleFile{sum: sum(c), list: ignore.Parse(c, s.conf.fold)}
		}
		if c, ok := s.hiddenFile[join(t.path, attrsName)]; ok && !own.attrs.there {
			own.attrs = ruleFile{sum: sum(c), flags: attrFlags(c)}
		}
	}
	if !t.ignored && !own.ignore.list.Empty() {
		t.scope, t.sig = t.scope.Enter(t.path, own.ignore.list), mix(t.sig, own.ignore.sum)
	}
	t.attrs = t.attrs.enterRules(own.attrs.flags, own.attrs.sum)
}
