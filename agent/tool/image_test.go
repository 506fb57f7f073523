package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/bmp"

	"muntin/agent/llm"
)

// noise cannot be packed, so that sizes are what the test wants.
func noise(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// corner is black but for its upper left, which is red.
func corner(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{A: 255}
			if x < w/2 && y < h/2 {
				c.R = 255
			}
			img.Set(x, y, c)
		}
	}
	return img
}

func encoded(t *testing.T, img image.Image, kind string) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "bmp":
		err = bmp.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content, note, mime string
		same                      bool
	}{
		{"png", encoded(t, corner(8, 8), "png"), "Read image file [image/png]", "image/png", true},
		{"jpeg", encoded(t, corner(8, 8), "jpeg"), "Read image file [image/jpeg]", "image/jpeg", true},
		{"gif", encoded(t, corner(8, 8), "gif"), "Read image file [image/gif]", "image/gif", true},
		{"bmp", encoded(t, corner(8, 8), "bmp"), "Read image file [image/bmp] (sent as image/png, 8x8 pixels)", "image/png", false},
		{"wide", encoded(t, corner(4000, 10), "png"), "Read image file [image/png] (sent as image/png, 2000x5 pixels)", "image/png", false},
		{"heavy", encoded(t, noise(1250, 1000), "png"), "Read image file [image/png] (sent as image/jpeg, 1250x1000 pixels)", "image/jpeg", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.file("pic.txt", c.content) // the name does not count
			res, err := e.try("read", args{"path": "pic.txt"})
			if err != nil || len(res.Content) != 2 || textOf(res) != c.note {
				t.Fatalf("got %d blocks, %q, %v", len(res.Content), textOf(res), err)
			}
			b := res.Content[1]
			if b.Type != llm.BlockImage || b.MimeType != c.mime || len(b.Data) > maxImageSize {
				t.Errorf("got %s of type %s, %d bytes", b.Type, b.MimeType, len(b.Data))
			}
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil || (string(data) == c.content) != c.same {
				t.Errorf("same content: %v, %v", string(data) == c.content, err)
			}
		})
	}
}

// exif puts an orientation into a JPEG.
func exif(jpg string, order binary.AppendByteOrder, orientation uint16) string {
	mark := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM"
	}
	tiff := order.AppendUint16([]byte(mark), 42)
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(tiff, 0x0112)
	tiff = order.AppendUint16(tiff, 3)
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint16(tiff, orientation)
	tiff = order.AppendUint16(tiff, 0)
	body := "Exif\x00\x00" + string(tiff)
	app1 := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2))
	return jpg[:2] + string(app1) + body + jpg[2:]
}

func TestImageOrientation(t *testing.T) {
	t.Parallel()
	jpg := encoded(t, corner(64, 32), "jpeg")
	for _, c := range []struct {
		orientation uint16
		w, h        int
		left, top   bool // where the red corner must be
	}{
		{1, 64, 32, true, true}, {2, 64, 32, false, true}, {3, 64, 32, false, false}, {4, 64, 32, true, false},
		{5, 32, 64, true, true}, {6, 32, 64, false, true}, {7, 32, 64, false, false}, {8, 32, 64, true, false},
		{9, 64, 32, true, true},
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			data := exif(jpg, order, c.orientation)
			if got := orientation([]byte(data)); got != int(c.orientation) {
				t.Fatalf("read %d, want %d", got, c.orientation)
			}
			src, err := jpeg.Decode(bytes.NewReader([]byte(data)))
			if err != nil {
				t.Fatal(err)
			}
			img := upright(src, orientation([]byte(data)))
			b := img.Bounds()
			x, y := b.Dx()/4, b.Dy()/4
			if !c.left {
				x = b.Dx() - 1 - x
			}
			if !c.top {
				y = b.Dy() - 1 - y
			}
			if r, _, _, _ := img.At(x, y).RGBA(); b.Dx() != c.w || b.Dy() != c.h || r < 0x8000 {
				t.Errorf("%d: %dx%d, red %x at %d,%d", c.orientation, b.Dx(), b.Dy(), r, x, y)
			}
		}
	}
}

func TestReadBrokenImage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	whole := encoded(t, noise(2100, 30), "png")
	e.file("cut", whole[:len(whole)/2])
	e.fails("read", args{"path": "cut"}, "reading cut", "image/png", "cannot be shown")
	head := []byte(encoded(t, corner(2, 2), "bmp"))
	binary.LittleEndian.PutUint32(head[18:], 30000)
	binary.LittleEndian.PutUint32(head[22:], 30000)
	e.file("bomb", string(head))
	e.fails("read", args{"path": "bomb"}, "30000x30000 pixels")
	e.file("text", "BM is how this text begins, and it is no picture")
	if got := e.must("read", args{"path": "text"}); got[:2] != "BM" {
		t.Errorf("got %q", got)
	}
}

func FuzzOrientation(f *testing.F) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, corner(2, 2), nil); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(exif(b.String(), binary.LittleEndian, 6)))
	f.Add([]byte(exif(b.String(), binary.BigEndian, 8)))
	f.Fuzz(func(_ *testing.T, data []byte) { orientation(data) })
}
