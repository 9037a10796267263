package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/readapi"
)

// mergeable reports whether the answers of several servers can be put together: they are JSON, and say what each object is.
func mergeable(r *http.Request) bool {
	return !strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "yaml") && r.URL.Query().Get("includeObject") != string(metav1.IncludeNone)
}

// question is what is asked of parts.
type question struct {
	query url.Values
	// accept is in what form it is to be answered, and stale says that it may be by what a cache has.
	accept []string
	stale  bool
}

// asker asks parts on behalf of a client.
type asker struct {
	server  *Server
	request *http.Request // the client's
	of      share
}

// lateness is how much longer than its cache may take to be fresh a part has for beginning its answer.
const lateness = 5 * time.Second

// errLate is why a part is not waited for any longer.
var errLate = errors.New("there was no answer in time")

// all asks all parts that are concerned. They have answered that they look for it in their caches; where one has not, the error
// is that of the own part, or of the first, and nothing is left open. ctx is that of the answers.
func (a asker) all(ctx context.Context, q question) ([]*http.Response, error) {
	answers, problems := make([]*http.Response, len(a.of.parts)), make([]error, len(a.of.parts))
	var group sync.WaitGroup
	for i, part := range a.of.parts {
		group.Go(func() { // ended by ctx or the timer of ask
			answers[i], problems[i] = a.ask(ctx, part, q)
		})
	}
	group.Wait()
	own := slices.Index(a.of.parts, a.server.options.Sharding.Own)
	for _, i := range append([]int{max(own, 0)}, indexes(len(a.of.parts))...) {
		if problems[i] != nil {
			closeAll(answers)
			return nil, problems[i]
		}
	}
	return answers, nil
}

// indexes are the numbers below n.
func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// closeAll closes what is left of answers, some of which may be nil.
func closeAll(answers []*http.Response) {
	for _, answer := range answers {
		if answer != nil {
			answer.Body.Close()
		}
	}
}

// ask asks one part.
func (a asker) ask(ctx context.Context, part int, q question) (*http.Response, error) {
	s := a.server.options.Sharding
	query := url.Values{}
	for name, values := range q.query {
		query[name] = values
	}
	ranges := s.part(part)
	if a.of.ranges != nil {
		ranges = ranges.And(a.of.ranges)
	}
	query.Set("shardSelector", ranges.Selector(s.Shard.Key()))
	to := &url.URL{Scheme: "https", Host: "part", Path: a.request.URL.Path, RawQuery: query.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Accept": q.accept, partHeader: {fmt.Sprint(part)}}
	if q.stale {
		r.Header.Set("Cache-Control", "max-stale")
	}
	answer, err := a.server.send(part, r)
	if err != nil {
		return nil, a.unanswered(part, err)
	}
	if err := a.refusal(part, answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// send sends a request to the server of a part, and waits for an answer to begin, but not for ever.
func (s *Server) send(part int, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // that of the answer, which ends with its parent
	timer := time.AfterFunc(s.options.FreshTimeout+lateness, func() { cancel(errLate) })
	defer timer.Stop()
	send := func(r *http.Request) (*http.Response, error) { return s.options.Sharding.Ask(part, r) }
	if part == s.options.Sharding.Own {
		send = s.self.RoundTrip
	}
	answer, err := send(r.WithContext(ctx))
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return answer, nil
}

// unanswered is the error of a part that is away.
func (a asker) unanswered(part int, err error) error {
	if cause := context.Cause(a.request.Context()); cause != nil {
		return cause
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the address
	}
	s := a.server.options.Sharding
	return errUnavailable("the server of the part %d of %d, %s, does not answer: %v", part+1, len(s.Parts), s.part(part).Selector(s.Shard.Key()), err)
}

// refusal is what the client is told of an answer that cannot be used. That an object is not there is an answer.
func (a asker) refusal(part int, answer *http.Response) error {
	looked := answer.Header.Get(ShardHeader) != ""
	if looked && (answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNotFound) {
		return nil
	}
	err := statusError(answer)
	switch {
	case looked, answer.StatusCode == http.StatusForbidden:
		return err
	case answer.StatusCode == http.StatusTooManyRequests:
		if _, told := apierrors.SuggestsClientDelay(err); !told {
			return apierrors.NewTooManyRequests(err.Error(), retrySeconds)
		}
		return err
	}
	return a.unanswered(part, err)
}

// getFromParts answers a request for one object, of which it is not known who has it.
func (s *Server) getFromParts(w http.ResponseWriter, r *http.Request, of share) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	answers, err := asker{s, r, of}.all(ctx, question{r.URL.Query(), r.Header.Values("Accept"), maxStale(r)})
	if err != nil {
		return err
	}
	defer closeAll(answers)
	var newest []byte
	var version uint64
	header, code := answers[0].Header, http.StatusNotFound
	for _, answer := range answers {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return errUnavailable("a server's answer was cut: %v", err)
		}
		var one item
		at := uint64(0)
		if answer.StatusCode == http.StatusOK {
			if err := json.Unmarshal(text, &one); err != nil {
				return errUnavailable("a server's answer cannot be read: %v", err)
			}
			at, _ = strconv.ParseUint(one.Metadata.ResourceVersion, 10, 64)
		}
		// One that was deleted, and created anew, may still be in the part where it was.
		if newest == nil || answer.StatusCode == http.StatusOK && (code != http.StatusOK || at > version) {
			newest, version, code, header = text, at, answer.StatusCode, answer.Header
		}
	}
	copyHeaders(w, header)
	w.WriteHeader(code)
	_, _ = w.Write(newest) // the client has gone: nobody is left to tell
	return nil
}

// copyHeaders copies what counts of the headers of a part to an answer that is about all.
func copyHeaders(w http.ResponseWriter, from http.Header) {
	for _, name := range []string{"Content-Type", "Cache-Control", "Warning", prunedHeader} {
		if values := from.Values(name); len(values) > 0 {
			w.Header()[name] = values
		}
	}
	w.Header().Set(ServedHeader, servedByCache)
}

// forwardedToParts are the headers of a request that another server needs.
var forwardedToParts = []string{"Accept", "Cache-Control", "User-Agent"}

// forward has the server of a part answer a request, which that has everything for.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, part int) {
	a := asker{server: s, request: r}
	w.Header().Del(ServedHeader)
	proxy := httputil.ReverseProxy{
		FlushInterval: -1, // events of watches
		Transport:     roundTripper(func(out *http.Request) (*http.Response, error) { return s.send(part, out) }),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Header = http.Header{partHeader: {fmt.Sprint(part)}}
			for _, name := range forwardedToParts {
				if values := p.In.Header.Values(name); len(values) > 0 {
					p.Out.Header[name] = values
				}
			}
			p.Out.Host = ""
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.Header.Get(ShardHeader) == "" {
				if err := a.refusal(part, answer); err != nil {
					return err
				}
			}
			answer.Header.Set(ServedHeader, servedByPart)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var told apierrors.APIStatus
			if !errors.As(err, &told) {
				err = a.unanswered(part, err)
			}
			if r.Context().Err() == nil {
				readapi.WriteError(w, r, err)
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// partPatience is how long a part of a list may wait until it is its turn to be read.
const partPatience = time.Minute

// patientWriter is for a part of a list. Who puts the list together reads no part before the others have got as far, so that one may
// wait for as long as a client takes for all of them.
type patientWriter struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetWriteDeadline is for http.ResponseController.
func (w patientWriter) SetWriteDeadline(at time.Time) error {
	if least := time.Now().Add(partPatience); !at.IsZero() && at.Before(least) {
		at = least
	}
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(at)
}

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
