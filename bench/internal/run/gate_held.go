package run

import (
	"bytes"
	"io"
	"sync"
)

// heldBody is the body of a watch. While the gate is closed, it buffers the server's data.
type heldBody struct {
	gate *gate
	body io.ReadCloser

	mu struct {
		sync.Mutex
		waiting bytes.Buffer
		err     error         // of the body, after the buffered data
		more    chan struct{} // closed when there is more data or an error
	}
	closed chan struct{} // closed by Close
	once   sync.Once
}

// wrapBody returns the body of a watch behind the gate.
func (g *gate) wrapBody(body io.ReadCloser) io.ReadCloser {
	h := &heldBody{gate: g, body: body, closed: make(chan struct{})}
	h.mu.more = make(chan struct{})
	go h.pump() // ends with the body, which Close closes
	return h
}

func (h *heldBody) pump() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := h.body.Read(buffer)
		h.mu.Lock()
		h.mu.waiting.Write(buffer[:n])
		h.mu.err = err
		close(h.mu.more)
		h.mu.more = make(chan struct{})
		h.mu.Unlock()
		h.gate.addHeld(bytes.Count(buffer[:n], []byte{'\n'}))
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (h *heldBody) Read(p []byte) (int, error) {
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
		case <-h.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

// take reads buffered data. If there is none, it returns a channel that is closed when there is more.
func (h *heldBody) take(p []byte) (n int, more <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, _ = h.mu.waiting.Read(p); n > 0 {
		return n, nil, nil
	}
	return 0, h.mu.more, h.mu.err
}

// Close implements io.Closer.
func (h *heldBody) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.body.Close()
}
