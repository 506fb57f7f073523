package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // the formats that image.Decode knows
	"image/jpeg"
	"image/png"
	"io"
	"os"

	_ "golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"muntin/agent"
	"muntin/agent/llm"
)

// What providers take of one picture, and what we take from a disk.
const (
	maxImageFile = 64 << 20
	maxPixels    = 100e6           // a small file can say that it is huge
	maxSide      = 2000            // pixels
	maxImageSize = 4.5 * (1 << 20) // of the base64 text
	maxImageData = maxImageSize/4*3 - 3
	scaleStep    = 0.75
)

type imageDetails struct {
	MimeType string `json:"mimeType"`
	Width    int    `json:"width"` // as it is sent
	Height   int    `json:"height"`
	Bytes    int    `json:"bytes"`
	Resized  bool   `json:"resized,omitempty"`
}

// imageType tells the type of a picture by its first bytes, "" for all else.
func imageType(head []byte) string {
	for _, m := range []struct{ magic, mime string }{
		{"\x89PNG\r\n\x1a\n", "image/png"},
		{"\xff\xd8\xff", "image/jpeg"},
		{"GIF87a", "image/gif"},
		{"GIF89a", "image/gif"},
		{"BM", "image/bmp"},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) && (m.mime != "image/bmp" || isBMP(head)) {
			return m.mime
		}
	}
	if len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return "image/webp"
	}
	return ""
}

// isBMP looks at the header behind the two letters, which a text may begin with.
func isBMP(head []byte) bool {
	return len(head) >= 18 && binary.LittleEndian.Uint32(head[6:]) == 0 && binary.LittleEndian.Uint32(head[14:]) <= 124
}

// imageResult is a picture as the model gets it: small enough for every provider.
func imageResult(f *os.File, mime string) (agent.ToolResult, error) {
	data, err := readWhole(f, maxImageFile)
	if err != nil {
		return agent.ToolResult{}, err
	}
	sent, details, err := fitImage(data, mime)
	if err != nil {
		return agent.ToolResult{}, fmt.Errorf("it is a picture (%s) that cannot be shown: %w", mime, err)
	}
	note := fmt.Sprintf("Read image file [%s]", mime)
	if details.Resized {
		note += fmt.Sprintf(" (sent as %s, %dx%d pixels)", details.MimeType, details.Width, details.Height)
	}
	res := textResult(note, details)
	res.Content = append(res.Content, llm.Block{
		Type: llm.BlockImage, Data: base64.StdEncoding.EncodeToString(sent), MimeType: details.MimeType,
	})
	return res, nil
}

// fitImage gives the picture as it is when it is small enough and of a type that
// providers take, else a smaller one.
func fitImage(data []byte, mime string) ([]byte, imageDetails, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, imageDetails{}, err
	}
	if float64(config.Width)*float64(config.Height) > maxPixels {
		return nil, imageDetails{}, fmt.Errorf("it has %dx%d pixels, which is more than is read", config.Width, config.Height)
	}
	if max(config.Width, config.Height) <= maxSide && len(data) <= maxImageData && mime != "image/bmp" {
		return data, imageDetails{MimeType: mime, Width: config.Width, Height: config.Height, Bytes: len(data)}, nil
	}
	src, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, imageDetails{}, err
	}
	if mime == "image/jpeg" {
		src = upright(src, orientation(data))
	}
	return shrink(src)
}

// shrink makes a picture that fits: the better of PNG and JPEG, then coarser JPEG,
// then fewer pixels.
func shrink(src image.Image) ([]byte, imageDetails, error) {
	size := src.Bounds().Size()
	scale := min(1, float64(maxSide)/float64(max(size.X, size.Y)))
	for scale*float64(max(size.X, size.Y)) >= 1 {
		img := resize(src, scale)
		out, mime, err := encodeImage(img)
		if err != nil {
			return nil, imageDetails{}, err
		}
		if out != nil {
			at := img.Bounds().Size()
			return out, imageDetails{MimeType: mime, Width: at.X, Height: at.Y, Bytes: len(out), Resized: true}, nil
		}
		scale *= scaleStep
	}
	return nil, imageDetails{}, errors.New("no version of it is small enough")
}

// encodeImage gives nil when no way to write it is small enough.
func encodeImage(img image.Image) (data []byte, mime string, err error) {
	var best bytes.Buffer
	if err := png.Encode(&best, img); err != nil {
		return nil, "", err
	}
	mime = "image/png"
	for _, quality := range []int{80, 70, 55, 40} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
			return nil, "", err
		}
		if b.Len() < best.Len() && !transparent(img) {
			best, mime = b, "image/jpeg"
		}
		if best.Len() <= maxImageData {
			return best.Bytes(), mime, nil
		}
	}
	return nil, "", nil
}

func transparent(img image.Image) bool {
	o, ok := img.(interface{ Opaque() bool })
	return ok && !o.Opaque()
}

func resize(src image.Image, scale float64) *image.RGBA {
	size := src.Bounds().Size()
	dst := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(size.X)*scale)), max(1, int(float64(size.Y)*scale))))
	if scale == 1 {
		draw.Copy(dst, image.Point{}, src, src.Bounds(), draw.Src, nil)
		return dst
	}
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	return dst
}

// upright turns a picture as its orientation says (Exif 2.32, tag 0x0112): 1 is
// upright, 2 to 8 are turned or mirrored. A coded-anew picture has lost the tag.
func upright(src image.Image, o int) image.Image {
	if o < 2 || o > 8 {
		return src
	}
	b := src.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if o >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	dst := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			to := image.Point{X: x, Y: y}
			switch o {
			case 2:
				to = image.Point{X: w - 1 - x, Y: y}
			case 3:
				to = image.Point{X: w - 1 - x, Y: h - 1 - y}
			case 4:
				to = image.Point{X: x, Y: h - 1 - y}
			case 5:
				to = image.Point{X: y, Y: x}
			case 6:
				to = image.Point{X: h - 1 - y, Y: x}
			case 7:
				to = image.Point{X: h - 1 - y, Y: w - 1 - x}
			case 8:
				to = image.Point{X: y, Y: w - 1 - x}
			}
			dst.Set(to.X, to.Y, src.At(b.Min.X+x, b.Min.Y+y))
		}
	}
	return dst
}

// orientation reads the tag out of a JPEG's APP1 segment; 1 when there is none.
func orientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		if data[at+1] == 0xda || length < 2 || at+2+length > len(data) { // the picture itself begins
			return 1
		}
		body := data[at+4 : at+2+length]
		if data[at+1] == 0xe1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")) {
			return tiffOrientation(body[6:])
		}
		at += 2 + length
	}
	return 1
}

func tiffOrientation(t []byte) int {
	if len(t) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if t[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(t[4:]))
	if at+2 > int64(len(t)) {
		return 1
	}
	entries := t[at:]
	for i := range int(order.Uint16(entries)) {
		if 2+12*(i+1) > len(entries) {
			return 1
		}
		e := entries[2+12*i:]
		if order.Uint16(e) == 0x0112 {
			return int(order.Uint16(e[8:]))
		}
	}
	return 1
}

// Picture reads a file that is a picture, made small enough for every provider. is
// tells whether it is one.
func Picture(path string) (b llm.Block, is bool, err error) {
	f, _, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return b, false, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := f.ReadAt(head, 0)
	mime := imageType(head[:n])
	if mime == "" {
		if errors.Is(err, io.EOF) {
			err = nil // it is shorter
		}
		return b, false, err
	}
	res, err := imageResult(f, mime)
	if err != nil {
		return b, true, fmt.Errorf("reading the picture %s: %w", path, err)
	}
	for _, c := range res.Content {
		if c.Type == llm.BlockImage {
			return c, true, nil
		}
	}
	return b, true, fmt.Errorf("reading the picture %s: %s", path, res.Content[0].Text)
}
