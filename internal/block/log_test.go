package block

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// logOf returns a log of three saves, and the lines that are valid after each.
func logOf(tb testing.TB, c *Cipher) (text []byte, states [][]string) {
	tb.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, LogForm, c)
	var lines []string
	for version := range 3 {
		for n := range 2 {
			record := fmt.Sprintf("O a record with the number %d of version %d", n, version)
			lines = append(lines, record)
			text, err := AppendText(nil, Changes, []byte(record), nil)
			if err == nil {
				_, err = w.Put(text)
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		at := persistence.Checkpoint{ResourceVersion: fmt.Sprint(version)}
		if err := w.Commit(Save{At: at}); err != nil {
			tb.Fatal(err)
		}
		states = append(states, append(slices.Clone(lines), fmt.Sprint(version)))
	}
	return out.Bytes(), states
}

func readLines(text []byte, c *Cipher) (lines []string, err error) {
	return readLinesFrom(bytes.NewReader(text), len(text), c)
}

func readLinesFrom(source io.ReaderAt, size int, c *Cipher) (lines []string, err error) {
	log, err := ReadLog(source, int64(size), c)
	if err != nil {
		return nil, err
	}
	err = log.Load(source, func(record persistence.Record) error {
		lines = append(lines, string(record.Head))
		return nil
	})
	return append(lines, log.At.ResourceVersion), err
}

// TestNoDamageGoesUnnoticed flips bits, truncates, and moves bytes of logs a hundred thousand times. A read
// returns an error, or exactly what was valid after a save.
func TestNoDamageGoesUnnoticed(t *testing.T) {
	cipher, err := NewCipher([][]byte{make([]byte, keyLength)})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	cut := 0
	for _, c := range []*Cipher{nil, cipher} {
		whole, states := logOf(t, c)
		if got, err := readLines(whole, c); err != nil || !slices.Equal(got, states[2]) {
			t.Fatalf("an intact log: %q, %v", got, err)
		}
		for range 50_000 {
			text := slices.Clone(whole)
			switch size := 1 + random.IntN(100); random.IntN(3) {
			case 0:
				text[random.IntN(len(text))] ^= 1 << random.IntN(8)
			case 1:
				text = text[:random.IntN(len(text))]
			default:
				copy(text[random.IntN(len(text)):], whole[random.IntN(len(whole)-size):][:size])
			}
			if bytes.Equal(text, whole) {
				continue
			}
			got, err := readLines(text, c)
			if err == nil && !slices.Equal(got, states[0]) && !slices.Equal(got, states[1]) {
				t.Fatalf("a damaged log was read as %q", got)
			}
			if err == nil {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("no log with a damaged end was read up to it")
	}
}

// countingReader counts the reads and the bytes of a source.
type countingReader struct {
	io.ReaderAt
	reads, bytes int
}

func (r *countingReader) ReadAt(dst []byte, offset int64) (int, error) {
	r.reads++
	r.bytes += len(dst)
	return r.ReaderAt.ReadAt(dst, offset)
}

// FuzzLog verifies that reading any log needs no more memory and work than its size allows: each byte is read
// once to check it, and once to decode it.
func FuzzLog(f *testing.F) {
	whole, _ := logOf(f, nil)
	f.Add(whole)
	f.Add(whole[:HeaderSize])
	f.Add(append(whole[:HeaderSize:HeaderSize], 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, text []byte) {
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		source := &countingReader{ReaderAt: bytes.NewReader(text)}
		_, _ = readLinesFrom(source, len(text), nil)
		if most := 2*len(text) + 3*HeaderSize; source.bytes > most || source.reads > 3+len(text)/4 {
			t.Errorf("reading a log of %d bytes needed %d reads of %d bytes", len(text), source.reads, source.bytes)
		}
		metrics.Read(allocated)
		const fixed = 1 << 20
		if cost := allocated[0].Value.Uint64() - before; cost > fixed+256*uint64(len(text)) {
			t.Errorf("reading a log of %d bytes allocated %d bytes", len(text), cost)
		}
	})
}
