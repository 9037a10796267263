package shard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/klog/v2/textlogger"
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

// TestMissingRights verifies that a replica without permission to write Leases logs that, not too often, and
// takes its shards when the permission is granted.
func TestMissingRights(t *testing.T) {
	for name, test := range map[string]struct{ forbidden, logged string }{
		"member": {`"name":"model-member-`,
			"Cannot renew the member Lease; this replica takes no shards until it succeeds"},
		"shards": {`"name":"model-00`, "Cannot acquire a shard"},
	} {
		t.Run(name, func(t *testing.T) {
			runModel(t, 1, func(m *model) {
				var granted atomic.Bool
				m.config = rest.CopyConfig(m.config)
				m.config.Wrap(forbid(test.forbidden, &granted))
				m.logger = ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
				m.startReplica(1, 0)
				time.Sleep(time.Minute)
				n := 0
				for _, entry := range m.logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
					if entry.Message == test.logged && strings.HasPrefix(fmt.Sprint(entry.Err), "you may not") {
						n++
					}
				}
				if n < 2 || n > 12 {
					m.Errorf("logged %d times within a minute", n)
				}
				granted.Store(true)
				m.awaitFair(time.Minute, "the right was granted")
			})
		})
	}
}

// forbid forbids the creation of objects that contain a text, until it is granted.
func forbid(text string, granted *atomic.Bool) func(http.RoundTripper) http.RoundTripper {
	return func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if granted.Load() || request.Method != http.MethodPost {
				return inner.RoundTrip(request)
			}
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(body, []byte(text)) {
				request.Body = io.NopCloser(bytes.NewReader(body))
				return inner.RoundTrip(request)
			}
			status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":%q,"code":403}`, metav1.StatusReasonForbidden)
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Request: request,
				Body:    io.NopCloser(strings.NewReader(status)),
			}, nil
		})
	}
}

// TestCanceledRequestsAreNotLogged verifies that requests cancelled by the end of the context are not logged
// as failures.
func TestCanceledRequestsAreNotLogged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := &rest.Config{Host: "http://localhost", Transport: roundTripper(
		func(*http.Request) (*http.Response, error) {
			cancel()
			return nil, io.ErrUnexpectedEOF
		})}
	member, err := New(Options{Config: config, Namespace: "default", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	present := make(chan struct{})
	close(present)
	member.observe(klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))),
		present)
	if out.Len() > 0 {
		t.Errorf("logged %s, want no failures", &out)
	}
}
