package session

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"time"
)

// indexMagic begins an index. Another version gets another number.
const indexMagic = "muntin sessions 1\n"

func checksum(b []byte) uint32 {
	return max(crc32.ChecksumIEEE(b), 1) // 0 has a meaning of its own
}

// encodeIndex makes the index: the magic, the records, and a checksum of both.
func encodeIndex(records []record) []byte {
	b := []byte(indexMagic)
	b = binary.AppendUvarint(b, uint64(len(records)))
	for _, r := range records {
		for _, s := range []string{r.rel, r.ID, r.Cwd, r.Name, r.First, r.Parent} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
		for _, n := range []int64{r.Size, r.mod, r.end, int64(r.head), int64(r.Messages), int64(r.Version), r.Created.UnixMilli()} {
			b = binary.AppendVarint(b, n)
		}
	}
	return appendSum(b)
}

func appendSum(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// readIndex reads the index. One that is missing or damaged holds nothing.
func readIndex(path string) map[string]record {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return decodeIndex(b)
}

func decodeIndex(b []byte) map[string]record {
	const sum = 4
	if len(b) < len(indexMagic)+sum || !bytes.HasPrefix(b, []byte(indexMagic)) {
		return nil
	}
	body := b[:len(b)-sum]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil
	}
	d := &indexReader{b: body[len(indexMagic):]}
	n := d.count()
	records := make(map[string]record, min(n, len(d.b)))
	for range n {
		r := record{rel: d.text()}
		r.ID, r.Cwd, r.Name, r.First, r.Parent = d.text(), d.text(), d.text(), d.text(), d.text()
		r.Size, r.mod, r.end, r.head = d.int(), d.int(), d.int(), uint32(d.int())
		r.Messages, r.Version, r.Created = int(d.int()), int(d.int()), time.UnixMilli(d.int()).UTC()
		if d.bad {
			return nil
		}
		records[r.rel] = r
	}
	return records
}

// indexReader takes values off a row of bytes.
type indexReader struct {
	b   []byte
	bad bool
}

func (d *indexReader) count() int {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	d.b = d.b[size:]
	return int(n)
}

func (d *indexReader) text() string {
	n := d.count()
	if d.bad || n > len(d.b) {
		d.bad = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *indexReader) int() int64 {
	n, size := binary.Varint(d.b)
	if d.bad || size <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[size:]
	return n
}
