package apitest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
)

// Sharding changes how an API server filters by shard, and counts what it sends.
type Sharding struct {
	http.Handler
	// Disabled ignores the shard of requests, like kube-apiserver without its feature ShardedListAndWatch.
	// OmitFromLists omits the shard from lists, like for custom resources.
	Disabled, OmitFromLists atomic.Bool
	// Sent counts the objects of lists and watches, Watches the open watches.
	Sent, Watches atomic.Int64
}

var shardInfo = regexp.MustCompile(`,?"shardInfo":{"selector":"[^"]*"}`)

// ServeHTTP implements http.Handler.
func (s *Sharding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if s.Disabled.Load() {
		query.Del("shardSelector")
		r.URL.RawQuery = query.Encode()
	}
	if query.Get("watch") == "true" {
		s.Watches.Add(1)
		defer s.Watches.Add(-1)
		s.Handler.ServeHTTP(&countedWatch{w, s}, r)
		return
	}
	answer := httptest.NewRecorder()
	r.Header.Del("Accept-Encoding")
	s.Handler.ServeHTTP(answer, r)
	body := answer.Body.Bytes()
	s.Sent.Add(int64(bytes.Count(body, []byte(`"uid":`))))
	if s.OmitFromLists.Load() {
		body = shardInfo.ReplaceAll(body, nil)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// countedWatch counts the events of a watch, without bookmarks.
type countedWatch struct {
	http.ResponseWriter
	sharding *Sharding
}

// Unwrap is for http.ResponseController.
func (w *countedWatch) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedWatch) Write(data []byte) (int, error) {
	w.sharding.Sent.Add(int64(bytes.Count(data, []byte("\n")) - bytes.Count(data, []byte(`"BOOKMARK"`))))
	return w.ResponseWriter.Write(data)
}
