package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// responses adapts the traffic between the clients of a command and a server. It is safe for concurrent use.
//
// A command that reads once lists like kubectl: watches are not sent, and a watch-list is answered as by a
// server without watch-lists, so that informers list. Behind a proxy that buffers, a watch-list would wait
// for its timeout.
type responses struct {
	target *Target
	// lastAnswerWas429 and hasPriorityHeaders describe the last answer. client-go retries requests with
	// status 429, and its timeout error does not mention the cause.
	lastAnswerWas429, hasPriorityHeaders atomic.Bool
	announceThrottling                   sync.Once
	// lastFailure is the last failure of a connection. client-go repeats requests whose connection is reset.
	lastFailure     atomic.Pointer[error]
	announceFailure sync.Once
	announceSilence sync.Once
	reasons         atomic.Pointer[serverReasons] // nil if it has none
	filesTime       atomic.Value                  // a time.Time, of a server of files
}

// serverReasons are the reasons of a server of files at a path, which is empty if they were not read.
type serverReasons struct {
	path string
	list []snapshot.Reason
}

// silence is the time without an answer after which a command names its open request.
const silence = 3 * time.Second

func (a *responses) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if response := a.answerWatch(r); response != nil {
			return response, nil
		}
		r = a.readNewest(r)
		silent := time.AfterFunc(silence, func() { a.silent(r) })
		response, err := next.RoundTrip(r)
		silent.Stop()
		if err != nil {
			a.failed(r, err)
			return nil, err
		}
		if at, err := time.Parse(time.RFC3339, response.Header.Get(filesource.TimeHeader)); err == nil {
			a.filesTime.Store(at)
		}
		switch named, last := response.Header.Get(filesource.ReasonsHeader), a.reasons.Load(); {
		case named != "" && (last == nil || last.path != named):
			a.reasons.Store(a.readReasons(next, r, named))
		case named == "" && last != nil && response.StatusCode == http.StatusOK:
			a.reasons.Store(nil)
		}
		isReason := func(warning string) bool { return strings.HasPrefix(warning, filesource.WarningPrefix) }
		response.Header["Warning"] = slices.DeleteFunc(response.Header["Warning"], isReason)
		isThrottled := response.StatusCode == http.StatusTooManyRequests
		a.lastAnswerWas429.Store(isThrottled)
		a.hasPriorityHeaders.Store(response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") != "")
		if isThrottled {
			a.throttled(response)
		}
		if response.StatusCode >= http.StatusBadRequest {
			summarizePage(response)
		}
		return response, nil
	})
}

// readReasons reads filesource.Source.Reasons from the server that has answered r.
func (a *responses) readReasons(next http.RoundTripper, r *http.Request, named string) *serverReasons {
	var reasons []snapshot.Reason
	request := r.Clone(r.Context())
	request.Method, request.Body = http.MethodGet, nil
	var response *http.Response
	server, _, err := rest.DefaultServerUrlFor(a.target.Rest)
	if err == nil {
		request.URL.Path, request.URL.RawQuery = path.Join("/", server.Path, named), ""
		response, err = next.RoundTrip(request)
	}
	if err == nil {
		err = json.NewDecoder(response.Body).Decode(&reasons)
		_ = response.Body.Close()
	}
	if err != nil {
		text := fmt.Sprintf("the server has reasons, which cannot be read: %v", err)
		return &serverReasons{list: []snapshot.Reason{{Text: text}}}
	}
	return &serverReasons{named, reasons}
}

// answerWatch answers the watches that the command does not send. It returns nil for other requests.
func (a *responses) answerWatch(r *http.Request) *http.Response {
	if !strings.Contains(r.URL.RawQuery, "watch=") {
		return nil
	}
	query := r.URL.Query()
	if isWatch, _ := strconv.ParseBool(query.Get("watch")); !isWatch {
		return nil
	}
	switch {
	case query.Get("sendInitialEvents") == "true" && !a.target.usesWatchLists:
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is not used"}`
		return newResponse(r, http.StatusUnprocessableEntity, io.NopCloser(strings.NewReader(body)))
	case !a.target.watchesServer:
		reader, writer := io.Pipe()
		context.AfterFunc(r.Context(), func() { writer.CloseWithError(context.Cause(r.Context())) })
		return newResponse(r, http.StatusOK, reader)
	}
	return nil
}

// readNewest makes a list request for any state one for the newest, unless the command serves a cache. A
// server's watch cache can be behind the user's latest write.
func (a *responses) readNewest(r *http.Request) *http.Request {
	query := r.URL.Query()
	if query.Get("resourceVersion") != "0" || a.target.usesWatchLists {
		return r
	}
	query.Del("resourceVersion")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

func newResponse(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/json"}},
		Body: body, ContentLength: -1, Request: r}
}

// discoveryPath matches the paths of requests that are not repeated.
var discoveryPath = regexp.MustCompile(`/(version|api(/[^/]+)?|apis(/[^/]+){0,2})/?$`)

// failed records the failure of a request that client-go repeats, and announces the first.
func (a *responses) failed(r *http.Request, err error) {
	isRepeated := utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err)
	if r.Context().Err() != nil || !isRepeated || discoveryPath.MatchString(r.URL.Path) {
		return
	}
	err = fmt.Errorf("%s %s: %w", r.Method, r.URL.Redacted(), err)
	a.lastFailure.Store(&err)
	if !a.target.watchesServer {
		a.announceFailure.Do(func() { a.target.Warnf("retrying: %v", err) })
	}
}

// silent announces the first request of a one-shot command that is not answered soon.
func (a *responses) silent(r *http.Request) {
	if r.Context().Err() != nil || a.target.watchesServer || a.target.ReadsFiles() {
		return
	}
	a.announceSilence.Do(func() {
		a.target.Warnf("waiting: the API server does not answer %s %s (--timeout %v)", r.Method, r.URL.Redacted(),
			a.target.Timeout)
	})
}

// throttled makes clients repeat the request also if a proxy sent the answer without Retry-After.
func (a *responses) throttled(response *http.Response) {
	if response.Header.Get("Retry-After") == "" {
		response.Header.Set("Retry-After", "1")
	}
	if !a.target.watchesServer {
		a.announceThrottling.Do(func() {
			a.target.Warnf("retrying: the API server at %s answers %d %s", a.target.Rest.Host,
				http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests))
		})
	}
}

// maxPageBytes bounds the part of a web page that is searched for its title.
const maxPageBytes = 64 << 10

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// summarizePage replaces a web page, as proxies send with errors, by its status and title.
func summarizePage(response *http.Response) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return
	}
	page, _ := io.ReadAll(io.LimitReader(response.Body, maxPageBytes))
	response.Body.Close()
	text := fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if match := pageTitle.FindSubmatch(page); match != nil {
		if title := print.OneSafeLine(string(bytes.TrimSpace(match[1]))); title != "" && title != text {
			text += ": " + title
		}
	}
	response.Header.Set("Content-Type", "text/plain")
	response.Header.Del("Content-Encoding")
	response.ContentLength = int64(len(text))
	response.Body = io.NopCloser(strings.NewReader(text))
}

const (
	// brieflyRetried is the time for which a request is repeated after errors that can be temporary, such as
	// those of an API server that restarts.
	brieflyRetried = 2 * time.Second
	// The pause between two attempts grows from minRetryPause to maxRetryPause.
	minRetryPause, maxRetryPause = 200 * time.Millisecond, 5 * time.Second
	throttledPause               = time.Second
)

// retryPeriod returns how long a command repeats a request that fails with err: not at all if the server
// refuses it or its answer cannot be decoded, and until --timeout if it asks for fewer requests or does not
// answer.
func retryPeriod(err error) time.Duration {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsTooManyRequests(err), isNetworkError(err):
		return math.MaxInt64
	case errors.As(err, &answer) && answer.Status().Code >= http.StatusInternalServerError:
		return brieflyRetried
	}
	return 0
}

// isNetworkError reports whether the connection failed. It returns false after --request-timeout.
func isNetworkError(err error) bool {
	return !errors.Is(err, context.DeadlineExceeded) && (errors.As(err, new(*url.Error)) ||
		errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// failures are the consecutive failures of a request.
type failures struct {
	target *Target
	name   string // of the type
	since  time.Time
}

// add returns the time for which the request may still be repeated. It prints the first failure.
func (f *failures) add(err error) (remaining time.Duration) {
	period := retryPeriod(err)
	if f.target.ReadsFiles() && !f.target.watchesServer {
		return 0 // files do not change while a command reads them
	}
	if f.target.watchesServer && period < math.MaxInt64 && !apierrors.IsBadRequest(err) {
		return math.MaxInt64 // watch and serve wait until the type can be read
	}
	if f.since.IsZero() {
		f.since = time.Now()
		announce := func() { f.target.Warnf("retrying: %s: %v", f.name, err) }
		switch {
		case period <= 0 || f.target.watchesServer:
		case isNetworkError(err):
			f.target.responses.announceFailure.Do(announce)
		default:
			announce()
		}
	}
	if period == math.MaxInt64 {
		return period
	}
	return period - time.Since(f.since)
}

// Retry calls request until it succeeds, its error is final, or ctx ends. name is the type for messages.
func (t *Target) Retry(ctx context.Context, name string, request func() error) error {
	failures := failures{target: t, name: name}
	var lastErr error
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		err := request()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			if failures.add(err) <= pause {
				return err
			}
			lastErr = err
			select {
			case <-ctx.Done():
			case <-time.After(pause):
				continue
			}
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		timeout := fmt.Errorf("%w: the API server at %s did not answer within %v", ErrNotSynced, t.Rest.Host,
			t.Timeout)
		if failure := t.responses.lastFailure.Load(); lastErr == nil && failure != nil {
			lastErr = *failure
		}
		if lastErr != nil {
			return fmt.Errorf("%w: %w", timeout, lastErr)
		}
		return timeout
	}
}

// retryThrottled calls request again while the server asks for fewer requests. It returns the last error.
func (t *Target) retryThrottled(ctx context.Context, request func() error) error {
	for {
		err := request()
		if !apierrors.IsTooManyRequests(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(throttledPause):
		}
	}
}
