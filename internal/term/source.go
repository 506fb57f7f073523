package term

import (
	"io"
	"os"

	"github.com/muesli/cancelreader"
)

// A Source is a reader whose reads can be ended.
type Source struct {
	io.Reader
	cancel func()
	close  func()
}

// NewSource makes the reads of in cancelable. A reader that is no file is closed by
// Cancel if it can be; what can be neither must end by itself.
func NewSource(in io.Reader) Source {
	nothing := func() {}
	if f, ok := in.(*os.File); ok {
		r, err := cancelreader.NewReader(f)
		if err != nil { // a regular file, which never makes one wait
			return Source{f, nothing, nothing}
		}
		return Source{r, func() { r.Cancel() }, func() { _ = r.Close() }}
	}
	if c, ok := in.(io.Closer); ok {
		return Source{in, func() { _ = c.Close() }, nothing}
	}
	return Source{in, nothing, nothing}
}

// Cancel ends a read that waits, and those to come.
func (s Source) Cancel() { s.cancel() }

// Close gives up what NewSource made. No read may go on; in stays open.
func (s Source) Close() { s.close() }
