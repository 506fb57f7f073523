package control

import "bytes"

// A block is the reply to one command: what stood between %begin and %end or
// %error.
type block struct {
	ours   bool // the command came from this client's input, and not from a hook or a key
	failed bool
	text   []byte // each line with its line feed; valid until the next call of feed
}

// A framer takes the stream of lines apart into blocks and lines outside of
// them.
//
// Inside a block every line is data, also one that begins with '%', until the
// line that ends it, which repeats the numbers of its %begin. Those numbers can
// be guessed, and a pane's screen or a folder's name can hold such a line. So
// the end of a block of ours is believed only when the next marker has come,
// whose word cannot be guessed: the last line of that kind before it was the
// real one.
type framer struct {
	word    string // begins the only line of a marker's block
	onBlock func(block)
	onLine  func([]byte) // the line is valid during the call

	state   frameState
	numbers []byte // of the block's %begin: "time number flags"
	ours    bool
	failed  bool
	data    []byte
	end     []byte   // the line that seemed to end the block
	tail    [][]byte // what came after it
}

type frameState int

const (
	outside frameState = iota
	inside
	ended // an end was seen, the next marker not yet
)

// feed takes the next line, without its line feed. The framer keeps no part
// of it.
func (f *framer) feed(line []byte) {
	switch f.state {
	case outside:
		if numbers, ok := begins(line); ok {
			f.open(numbers)
			return
		}
		f.onLine(line)
	case inside:
		failed, ok := f.ends(line)
		switch {
		case !ok:
			f.data = append(append(f.data, line...), '\n')
		case f.ours && !f.isMarker(bytes.TrimSuffix(f.data, []byte("\n"))):
			f.state, f.failed = ended, failed
			f.end = append(f.end[:0], line...)
		default:
			f.failed = failed
			f.close()
		}
	case ended:
		f.after(line)
	}
}

// after takes a line that came after what seemed the end of a block.
func (f *framer) after(line []byte) {
	if failed, ok := f.ends(line); ok {
		f.data = append(append(f.data, f.end...), '\n')
		for _, l := range f.tail {
			f.data = append(append(f.data, l...), '\n')
		}
		f.failed, f.tail = failed, nil
		f.end = append(f.end[:0], line...)
		return
	}
	f.tail = append(f.tail, bytes.Clone(line))
	if n := len(f.tail); n > 1 && f.isMarker(line) {
		if numbers, ok := begins(f.tail[n-2]); ok && isOurs(numbers) {
			f.settle()
		}
	}
}

// settle believes the end of the block and takes what came after it.
func (f *framer) settle() {
	tail := f.tail
	f.tail = nil
	f.close()
	for _, l := range tail {
		f.feed(l)
	}
}

// finish is to be called when the stream has ended: no marker will come.
func (f *framer) finish() {
	for f.state == ended {
		f.settle()
	}
}

func (f *framer) open(numbers []byte) {
	f.state, f.ours = inside, isOurs(numbers)
	f.numbers = append(f.numbers[:0], numbers...)
	f.data = f.data[:0]
}

func (f *framer) close() {
	f.state = outside
	f.onBlock(block{ours: f.ours, failed: f.failed, text: f.data})
}

func (f *framer) isMarker(line []byte) bool {
	line, _ = bytes.CutPrefix(line, []byte(unknownCommand))
	return len(line) > len(f.word) && string(line[:len(f.word)]) == f.word
}

// begins reads "%begin time number flags".
func begins(line []byte) (numbers []byte, ok bool) {
	numbers, ok = bytes.CutPrefix(line, []byte("%begin "))
	if !ok {
		return nil, false
	}
	words := 0
	for w := range bytes.SplitSeq(numbers, []byte(" ")) {
		words++
		if len(w) == 0 || len(bytes.TrimLeft(w, "0123456789")) > 0 {
			return nil, false
		}
	}
	return numbers, words == 3
}

// isOurs looks at the flags: 1 says that the command came from our input.
func isOurs(numbers []byte) bool { return (numbers[len(numbers)-1]-'0')&1 == 1 }

func (f *framer) ends(line []byte) (failed, ok bool) {
	if numbers, ok := bytes.CutPrefix(line, []byte("%end ")); ok {
		return false, bytes.Equal(numbers, f.numbers)
	}
	if numbers, ok := bytes.CutPrefix(line, []byte("%error ")); ok {
		return true, bytes.Equal(numbers, f.numbers)
	}
	return false, false
}
