package shard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

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
				rights, log := &forbiddingTransport{text: test.forbidden}, &errorLog{}
				m.config = rest.CopyConfig(m.config)
				m.config.Wrap(rights.wrap)
				m.logger = klog.New(log)
				m.startReplica(1, 0)
				time.Sleep(time.Minute)
				if n := log.count(test.logged + ": you may not"); n < 2 || n > 12 {
					m.Errorf("logged %d times within a minute", n)
				}
				rights.grant()
				m.awaitFair(time.Minute, "the right was granted")
			})
		})
	}
}

// forbiddingTransport forbids the creation of objects that contain a text, until grant is called.
type forbiddingTransport struct {
	text  string
	inner http.RoundTripper

	mu      sync.Mutex
	granted bool
}

func (r *forbiddingTransport) wrap(inner http.RoundTripper) http.RoundTripper {
	r.inner = inner
	return r
}

func (r *forbiddingTransport) grant() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted = true
}

func (r *forbiddingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	granted := r.granted
	r.mu.Unlock()
	if granted || request.Method != http.MethodPost {
		return r.inner.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(body, []byte(r.text)) {
		request.Body = io.NopCloser(bytes.NewReader(body))
		return r.inner.RoundTrip(request)
	}
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":%q,"code":403}`, metav1.StatusReasonForbidden)
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
		Request: request,
		Body:    io.NopCloser(strings.NewReader(status)),
	}, nil
}

// TestCanceledRequestsAreNotLogged verifies that requests cancelled by the end of the context are not logged
// as failures.
func TestCanceledRequestsAreNotLogged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := &rest.Config{Host: "http://localhost", Transport: cancelingTransport(cancel)}
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

// cancelingTransport ends a context before each request, and makes the request fail.
type cancelingTransport func()

func (c cancelingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	c()
	return nil, io.ErrUnexpectedEOF
}

type errorLog struct {
	mu    sync.Mutex
	lines []string
}

// count returns the number of logged lines that start with a text.
func (l *errorLog) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

func (l *errorLog) Error(err error, message string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s: %v", message, err))
}

func (l *errorLog) Init(klog.RuntimeInfo) {}

func (l *errorLog) Enabled(int) bool { return false }

func (l *errorLog) Info(int, string, ...any) {}

func (l *errorLog) WithValues(...any) klog.LogSink { return l }

func (l *errorLog) WithName(string) klog.LogSink { return l }
