package proc

// tail is a writer that keeps the last bytes written to it. It holds at most
// twice what it keeps.
type tail struct {
	keep int
	buf  []byte
}

func newTail(keep int) *tail {
	if keep <= 0 {
		keep = defaultKeep
	}
	return &tail{keep: keep}
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.keep {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.keep:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte {
	if len(t.buf) > t.keep {
		return t.buf[len(t.buf)-t.keep:]
	}
	return t.buf
}
