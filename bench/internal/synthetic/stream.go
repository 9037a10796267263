package synthetic

import (
	"compress/gzip"
	"net/http"
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
