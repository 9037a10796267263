package run

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"time"
)

// stream is the answer to a watch.
type stream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	done  <-chan struct{}
	zip   *gzip.Writer // nil without compression
}

// write sends events together. It returns false after the client has disconnected.
func (s *stream) write(events ...[]byte) bool {
	if s.zip != nil {
		if len(events) == 0 {
			return s.stillConnected(nil)
		}
		var text []byte
		for _, event := range events {
			text = append(text, event...)
		}
		return s.raw(compress(s.zip, text))
	}
	for _, event := range events {
		if _, err := s.w.Write(event); err != nil {
			return false
		}
	}
	return s.stillConnected(s.flush.Flush())
}

// piece sends a compressed piece, decompressed if the client does not accept gzip.
func (s *stream) piece(piece []byte) bool {
	if s.zip != nil {
		return s.raw(piece)
	}
	text, err := decompress(piece)
	return err == nil && s.write(text)
}

func (s *stream) raw(bytes []byte) bool {
	if _, err := s.w.Write(bytes); err != nil {
		return false
	}
	return s.stillConnected(s.flush.Flush())
}

// stillConnected reports whether the client is still connected.
func (s *stream) stillConnected(err error) bool {
	select {
	case <-s.done:
		return false
	default:
		return err == nil
	}
}

// Update changes the first count objects one after the other at the given rate per second. It returns a map
// from the key of each object to the time immediately before its change.
func (a *syntheticAPI) Update(ctx context.Context, count int, rate float64) (map[string]time.Time, error) {
	sent := make(map[string]time.Time, count)
	start := time.Now()
	due := time.NewTimer(0)
	defer due.Stop()
	for n := range count {
		due.Reset(time.Until(start.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		select {
		case <-due.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		key := a.recording.keyOf(n)
		sent[key] = time.Now()
		a.change(n)
	}
	return sent, nil
}

// change creates a version of object n and its event.
func (a *syntheticAPI) change(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	revision := a.changeLocked(n)
	a.mu.log = append(a.mu.log, a.appendEvent(nil, "MODIFIED", n, revision))
	close(a.mu.logGrown)
	a.mu.logGrown = make(chan struct{})
}

func (a *syntheticAPI) changeLocked(n int) objectRevision {
	a.mu.version++
	revision := objectRevision{version: a.mu.version, generation: a.revisionLocked(n).generation}
	if !a.KeepGenerations {
		revision.generation++
	}
	a.mu.changed[n] = revision
	a.mu.pieces[n/objectsPerPiece] = nil
	return revision
}

// Expire changes the last object without an event and ends all watches, so that clients must relist, as after
// a long disconnection. It returns the time immediately before the watches end.
func (a *syntheticAPI) Expire() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changeLocked(a.count - 1)
	a.restore(a.mu.pieces) // so that the relists do not wait for it
	a.mu.log, a.mu.logged = nil, a.mu.version
	before := time.Now()
	close(a.mu.watchesExpired)
	a.mu.watchesExpired = make(chan struct{})
	return before
}

func decompress(piece []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(piece))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
