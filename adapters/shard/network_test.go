package shard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// network connects one replica with the API server.
type network struct {
	inner http.RoundTripper
	// skew is the time by which the replica's wall clock is ahead.
	skew time.Duration

	mu struct {
		sync.Mutex
		// healed is nil unless the network is interrupted. It is closed when the interruption ends.
		healed chan struct{}
		// dropsResponsesOnly is true if an interruption drops only responses.
		dropsResponsesOnly bool
		latency            func() time.Duration
		killed             bool
		// requests counts requests by verb.
		requests map[string]int
	}
}

var errDead = errors.New("the process was killed")

// connect returns a config that sends requests through n.
func connect(config *rest.Config, n *network) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		n.inner = inner
		return n
	})
	return config
}

// partition interrupts the network until heal is called.
func (n *network) partition(dropsResponsesOnly bool) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.healed != nil {
		return func() {}
	}
	healed := make(chan struct{})
	n.mu.healed, n.mu.dropsResponsesOnly = healed, dropsResponsesOnly
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.healed = nil
		close(healed)
	})
}

func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.killed = true
}

func (n *network) setLatency(latency func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.latency = latency
}

func (n *network) count(verb string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.requests[verb]
}

// delayOrBlock delays a request or response by the latency, and blocks while the network is interrupted. It
// returns an error after an interruption, because connections do not survive it, and if the replica was
// killed.
func (n *network) delayOrBlock(ctx context.Context, isRequest bool) error {
	n.mu.Lock()
	healed, killed, latency, dropsResponsesOnly := n.mu.healed, n.mu.killed, n.mu.latency,
		n.mu.dropsResponsesOnly
	n.mu.Unlock()
	if killed {
		return errDead
	}
	if latency != nil {
		select {
		case <-time.After(latency()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if healed != nil && !(dropsResponsesOnly && isRequest) {
		select {
		case <-healed:
			return io.ErrUnexpectedEOF // connections do not survive
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	if n.mu.requests == nil {
		n.mu.requests = map[string]int{}
	}
	n.mu.requests[r.Method]++
	n.mu.Unlock()
	if err := n.delayOrBlock(r.Context(), true); err != nil {
		return nil, err
	}
	if n.skew != 0 && r.Body != nil && r.Method != http.MethodDelete {
		if err := n.shiftTimes(r); err != nil {
			return nil, err
		}
	}
	response, err := n.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := n.delayOrBlock(r.Context(), false); err != nil {
		response.Body.Close()
		return nil, err
	}
	response.Body = &stream{ReadCloser: response.Body, ctx: r.Context(), network: n}
	return response, nil
}

// shiftTimes adds skew to the times of the Lease in a request.
func (n *network) shiftTimes(r *http.Request) error {
	var lease coordinationv1.Lease
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime != nil {
		lease.Spec.RenewTime.Time = lease.Spec.RenewTime.Add(n.skew)
	}
	if lease.Spec.AcquireTime != nil {
		lease.Spec.AcquireTime.Time = lease.Spec.AcquireTime.Add(n.skew)
	}
	body, err := json.Marshal(&lease)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// stream is a response body that interruptions affect, too.
type stream struct {
	io.ReadCloser
	ctx     context.Context
	network *network
}

func (s *stream) Read(p []byte) (int, error) {
	read, err := s.ReadCloser.Read(p)
	if networkErr := s.network.delayOrBlock(s.ctx, false); networkErr != nil {
		return 0, networkErr
	}
	return read, err
}
