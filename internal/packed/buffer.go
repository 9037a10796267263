package packed

import "sync"

// maxPooled is the size up to which buffers are used again.
const maxPooled = 1 << 20

// buffer is memory for the time of one call.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, 4<<10)} }}

func (b *buffer) release() {
	if cap(b.bytes) > maxPooled {
		return
	}
	b.bytes = b.bytes[:0]
	buffers.Put(b)
}
