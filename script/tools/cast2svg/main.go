// Command cast2svg makes an animated SVG of a terminal recording: some dozen key
// frames that CSS shows one after the other. What shows no animation shows the last.
//
//	cast2svg [flags] <recording.cast >picture.svg
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"muntin/script/tools/cast"
)

type options struct {
	frames   int           // key frames at most
	play     time.Duration // how long the animation takes, without hold
	hold     time.Duration // how long the last frame stays
	maxBytes int
	title    string
}

func main() {
	var o options
	flag.IntVar(&o.frames, "frames", 60, "key frames at most; fewer are taken when the file would grow beyond -max-bytes")
	flag.DurationVar(&o.play, "play", 30*time.Second, "how long the animation takes, without -hold")
	flag.DurationVar(&o.hold, "hold", 4*time.Second, "how long the last frame stays")
	flag.IntVar(&o.maxBytes, "max-bytes", 400_000, "how long the file may be")
	flag.StringVar(&o.title, "title", "a terminal recording", "the text for those who cannot see the picture")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "cast2svg:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, o options) error {
	header, events, err := cast.Read(in)
	if err != nil {
		return err
	}
	shots, err := replay(header.Term, events)
	if err != nil {
		return err
	}
	for n := o.frames; n > 0; n = n * 4 / 5 {
		var b bytes.Buffer
		pick := choose(shots, n)
		(&picture{term: header.Term, frames: pick, options: o}).write(&b)
		if b.Len() <= o.maxBytes {
			_, err := out.Write(b.Bytes())
			return err
		}
	}
	return fmt.Errorf("one frame alone is longer than %d bytes", o.maxBytes)
}
