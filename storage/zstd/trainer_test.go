package zstd

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestMemoryBound verifies that data whose declared size exceeds that of any object is reported as damaged.
func TestMemoryBound(t *testing.T) {
	c, err := New(Options{}).Train([][]byte{[]byte(`{"kind":"Widget"}`)})
	if err != nil {
		t.Fatal(err)
	}
	const blocks = maxObject>>17 + 100 // number of blocks of 128 KiB
	// The frame has one segment, its size, and blocks that repeat a byte.
	frame := binary.LittleEndian.AppendUint64([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, blocks<<17)
	for i := range blocks {
		header := uint32(1<<17)<<3 | 1<<1
		if i == blocks-1 {
			header |= 1
		}
		frame = append(frame, byte(header), byte(header>>8), byte(header>>16), 'x')
	}
	if data, err := c.Decompress(nil, frame); !errors.Is(err, errDamaged) {
		t.Errorf("Decompress() returned %d bytes for %d, %v, want errDamaged", len(data), len(frame), err)
	}
}
