package s2

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestMemoryBound verifies that data whose declared size exceeds that of any object is reported as damaged.
func TestMemoryBound(t *testing.T) {
	c, err := New().Train([][]byte{[]byte(`{"kind":"Widget"}`)})
	if err != nil {
		t.Fatal(err)
	}
	data := append(binary.AppendUvarint(nil, maxObject+1), "something"...)
	if back, err := c.Decompress(nil, data); !errors.Is(err, errDamaged) || cap(back) > 0 {
		t.Errorf("Decompress() allocated %d bytes for %d, %v, want errDamaged", cap(back), len(data), err)
	}
}
