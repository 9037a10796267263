package apitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/serving/readapi"
)

// Sharding is a proxy that filters by shard, like a kube-apiserver with its feature ShardedListAndWatch, in
// front of an API server that does not.
type Sharding struct {
	http.Handler
	// Disabled forwards requests unchanged. OmitFromLists omits the shard from lists, like for custom
	// resources.
	Disabled, OmitFromLists atomic.Bool
	// Sent counts the forwarded objects, Watches the open watches.
	Sent, Watches atomic.Int64
}

// ServeHTTP implements http.Handler.
func (s *Sharding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	text := query.Get("shardSelector")
	query.Del("shardSelector")
	r.URL.RawQuery = query.Encode()
	var selector *readapi.ShardSelector // nil selects all
	var err error
	if text != "" {
		selector, err = readapi.ParseShardSelector(text)
	}
	if query.Get("watch") == "true" {
		s.Watches.Add(1)
		defer s.Watches.Add(-1)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case s.Disabled.Load():
		s.Handler.ServeHTTP(w, r)
	case query.Get("watch") == "true":
		lines := &shardedWatch{ResponseWriter: w, sharding: s, selector: selector}
		s.Handler.ServeHTTP(lines, r)
	default:
		s.list(w, r, selector)
	}
}

func (s *Sharding) list(w http.ResponseWriter, r *http.Request, selector *readapi.ShardSelector) {
	response := httptest.NewRecorder()
	r.Header.Del("Accept-Encoding")
	s.Handler.ServeHTTP(response, r)
	body := response.Body.Bytes()
	var list struct {
		Items    *[]json.RawMessage `json:"items"`
		Metadata map[string]any     `json:"metadata"`
		Rest     map[string]any     `json:"-"`
	}
	if json.Unmarshal(body, &list) == nil && list.Items != nil {
		selected := []json.RawMessage{}
		for _, item := range *list.Items {
			if s.selects(selector, item) {
				selected = append(selected, item)
			}
		}
		if selector != nil && !s.OmitFromLists.Load() {
			list.Metadata["shardInfo"] = map[string]any{"selector": selector.String()}
		}
		_ = json.Unmarshal(body, &list.Rest)
		list.Rest["items"], list.Rest["metadata"] = selected, list.Metadata
		body, _ = json.Marshal(list.Rest)
	}
	for name, values := range response.Header() {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(response.Code)
	_, _ = w.Write(body)
}

func (s *Sharding) selects(selector *readapi.ShardSelector, object []byte) bool {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(object, &u.Object); err != nil {
		return true
	}
	if selector == nil || selector.Contains(selector.Key.Hash(u)) {
		s.Sent.Add(1)
		return true
	}
	return false
}

// shardedWatch filters the events of a watch.
type shardedWatch struct {
	http.ResponseWriter
	sharding *Sharding
	selector *readapi.ShardSelector
	buffered []byte // an incomplete line
}

// Unwrap is called by http.ResponseController.
func (w *shardedWatch) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *shardedWatch) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *shardedWatch) Write(data []byte) (int, error) {
	w.buffered = append(w.buffered, data...)
	scanner := bufio.NewReader(bytes.NewReader(w.buffered))
	for {
		line, err := scanner.ReadBytes('\n')
		if err != nil {
			w.buffered = line
			return len(data), nil
		}
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		_ = json.Unmarshal(line, &event)
		if event.Type == "BOOKMARK" || event.Type == "ERROR" || event.Type == "" ||
			w.sharding.selects(w.selector, event.Object) {
			if _, err := w.ResponseWriter.Write(line); err != nil {
				return 0, err
			}
		}
	}
}
