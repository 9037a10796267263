package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// stopPath is where a server is asked to end. The answer is its Info, and ends when the server has.
const stopPath = "/crdcache/stop"

// stopHead is the head of that answer, whose length nobody knows.
const stopHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

// serveStop ends the server. The connection outlives the HTTP server, so that it tells of the end of all that comes after.
func (s *Server) serveStop(w http.ResponseWriter) {
	info, err := json.Marshal(s.options.Info())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(connection, "%s%s\n", stopHead, info) // whoever has gone does not wait
	s.mu.Lock()
	if s.mu.ended {
		connection.Close()
	} else {
		s.mu.stopping = append(s.mu.stopping, connection)
	}
	s.mu.Unlock()
	s.stop(ErrStopped)
}

// tellEnd tells those who have stopped the server that it has ended.
func (s *Server) tellEnd() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ended = true
	var errs []error
	for _, connection := range s.mu.stopping {
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}

// Stop ends the server, and returns what it said of itself when it has ended and left its place. If ctx ends before, the
// server has been told, and ends all the same.
func (c *Client) Stop(ctx context.Context) (Info, error) {
	var info Info
	answer, err := c.do(ctx, http.MethodPost, stopPath, nil)
	if err != nil {
		return info, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&info); err != nil {
		return info, err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil && ctx.Err() != nil {
		return info, fmt.Errorf("process %d was told to end, and has not yet: %w", info.PID, context.Cause(ctx))
	}
	return info, nil // with whatever error its end was told
}
