package checkpoint

// Progress is how far a long call has come.
type Progress struct {
	What  string // "restoring", "reading objects", "reading files"
	Done  int
	Total int // 0: not known
}

// progress tells Options.Progress, if there is one.
func (s *Store) progress(p Progress) {
	if s.opts.Progress != nil {
		s.opts.Progress(p)
	}
}

// reached tells a test that a restore has come to a point that has a name.
func (s *Store) reached(point string) {
	if s.opts.reached != nil {
		s.opts.reached(point)
	}
}

func (a *applier) reached(point string) { a.store.reached(point) }
