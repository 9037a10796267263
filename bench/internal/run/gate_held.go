package run

import (
	"bytes"
	"io"
	"sync"
)

// held is the body of a watch. While the gate is closed, it buffers the server's data.
type held struct {
	gate *gate
	body io.ReadCloser

	mu struct {
		sync.Mutex
		waiting bytes.Buffer
		err     error         // of the body, after the buffered data
		more    chan struct{} // closed when there is more data or an error
	}
	gone chan struct{} // closed by Close
	once sync.Once
}

// hold returns the body of a watch behind the gate.
func (g *gate) hold(body io.ReadCloser) io.ReadCloser {
	h := &held{gate: g, body: body, gone: make(chan struct{})}
	h.mu.more = make(chan struct{})
	go h.pump() // ends with the body, which Close closes
	return h
}

func (h *held) pump() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := h.body.Read(buffer)
		h.mu.Lock()
		h.mu.waiting.Write(buffer[:n])
		h.mu.err = err
		close(h.mu.more)
		h.mu.more = make(chan struct{})
		h.mu.Unlock()
		h.gate.count(bytes.Count(buffer[:n], []byte{'\n'}))
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (h *held) Read(p []byte) (int, error) {
	for {
		closed, _, changed := h.gate.state()
		n, more, err := 0, (<-chan struct{})(nil), error(nil)
		if !closed {
			n, more, err = h.take(p)
		}
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-more:
		case <-h.gone:
			return 0, io.ErrClosedPipe
		}
	}
}

// take reads buffered data. If there is none, it returns a channel that is closed when there is more.
func (h *held) take(p []byte) (n int, more <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, _ = h.mu.waiting.Read(p); n > 0 {
		return n, nil, nil
	}
	return 0, h.mu.more, h.mu.err
}

// Close implements io.Closer.
func (h *held) Close() error {
	h.once.Do(func() { close(h.gone) })
	return h.body.Close()
}
