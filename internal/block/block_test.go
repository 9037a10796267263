package block_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/block"
)

// TestRecords verifies that records are read as they were written, whatever they compress to, with any
// compressor, and that a frame is read where it was written, and nowhere else.
func TestRecords(t *testing.T) {
	noise := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never returns an error
	texts := [][]byte{nil, []byte("short"), bytes.Repeat([]byte("some text "), 10_000), make([]byte, 1<<20), noise}
	for _, c := range []*block.Compressor{nil, {}} {
		for i, text := range texts {
			p := block.Parts{Head: text, Bodies: texts[(i+1)%len(texts)]}
			record, err := block.AppendObjects(nil, p, i%2 == 0, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := block.ReadObjects(record)
			clear(record) // the head and the bodies are copies, or decompressed
			bodies, bodiesErr := got.Bodies()
			if err := errors.Join(err, bodiesErr); err != nil || !bytes.Equal(bodies, p.Bodies) ||
				got.BodiesSize() != len(bodies) || got.StoredSize() == 0 && len(bodies) > 0 {
				t.Errorf("%d: read bodies of %d bytes, %v, want %d", i, len(bodies), err, len(p.Bodies))
			}
			record, err = block.AppendText([]byte("before"), block.Changes, text, c)
			if err != nil {
				t.Fatal(err)
			}
			header := block.Header{Form: block.LogForm}
			frame := header.AppendFrame(nil, record, 32, nil)
			_, _, moved := header.ParseFrame(frame, 99, nil)
			if read, _, err := header.ParseFrame(frame, 32, nil); !bytes.Equal(read, record) || moved == nil {
				t.Errorf("%d: read a frame of %d bytes, %v, and at another place, %v", i, len(read), err, moved)
			}
			if got, err := block.ReadText(block.Changes, record[6:]); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d: read a text of %d bytes, %v, want %d", i, len(got), err, len(text))
			}
			if _, err := block.ReadText(block.Index, record[6:]); !errors.Is(err, block.ErrDamaged) {
				t.Errorf("reading a record of another kind: %v, want ErrDamaged", err)
			}
		}
	}
	if _, err := block.AppendText(nil, block.Changes, make([]byte, block.MaxContent+1), nil); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("AppendText() of a huge text: %v, want an error about its size", err)
	}
}

// FuzzRecord verifies that reading any record needs no more memory than its size allows.
func FuzzRecord(f *testing.F) {
	p := block.Parts{Head: []byte("a head"), Bodies: bytes.Repeat([]byte("bodies "), 100)}
	for _, c := range []*block.Compressor{nil, {}} {
		record, err := block.AppendObjects(nil, p, false, c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
	}
	f.Add([]byte("O\x02\x00\x00\x00\x03\x03\x00\x00\x00\xff\xff\x7f\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("C\x01\xff\xff\xff\x03\xff\xff\xff\x03"))
	// A frame of Zstandard claims 53 MB.
	f.Add([]byte("O\x010\x02\x00\x00\x1a\x00\x00\x00(\xb5/\xfd\x800000\x03000000000000000000" +
		"\x00\x00\x00\x05\x00\x00\x0000000"))
	f.Fuzz(func(t *testing.T, record []byte) {
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		if o, err := block.ReadObjects(record); err == nil {
			_, _ = o.Bodies()
		}
		_, _ = block.ReadText(block.Changes, record)
		metrics.Read(allocated)
		const fixed = 32 << 20 // the decoder, which is reused
		if cost := allocated[0].Value.Uint64() - before; cost > fixed+1024*uint64(len(record)) {
			t.Errorf("reading %d bytes allocated %d bytes", len(record), cost)
		}
	})
}
