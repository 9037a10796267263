package live

import (
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi"
)

// AnswerKind is the kind of an Answer.
const AnswerKind = "QueryAnswer"

// Answer is the answer to a query over HTTP, as JSON. What was not asked for is left out.
type Answer struct {
	Kind string `json:"kind"`
	// ResourceVersion is what the answer is at, and Contact when the API server last confirmed that. Stale is
	// set while the cache may be behind.
	ResourceVersion string    `json:"resourceVersion"`
	Contact         time.Time `json:"contact"`
	Stale           bool      `json:"stale,omitempty"`
	// Plan says how the query was answered, one step on each line, and Warnings why the answer may not be
	// what was meant.
	Plan     string   `json:"plan,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Continue is the token for what comes next; empty when nothing does.
	Continue string `json:"continue,omitempty"`
	// Count is the number of objects.
	Count *int `json:"count,omitempty"`
	// Keys are those of the objects, in order.
	Keys []string `json:"keys,omitempty"`
	// Values are those of an index.
	Values []query.ValueCount `json:"values,omitempty"`
	// Groups are those of an aggregation.
	Groups []query.Group `json:"groups,omitempty"`
	// Items are the objects, in order, as they are kept.
	Items []json.RawMessage `json:"items,omitempty"`
	// Columns are those of the table that was asked for, and Rows what the objects show in them, in order.
	Columns []metav1.TableColumnDefinition `json:"columns,omitempty"`
	Rows    []Row                          `json:"rows,omitempty"`
}

// Row is what an object shows in a table.
type Row struct {
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Cells are as those of a Table of the API server: text, int64, float64, bool, or nil.
	Cells []any `json:"cells"`
}

// UnmarshalJSON implements json.Unmarshaler: whole numbers stay whole.
func (r *Row) UnmarshalJSON(text []byte) error {
	type plain Row
	return utiljson.Unmarshal(text, (*plain)(r))
}

// answering is an Answer with the objects as the result of the query holds them.
type answering struct {
	Answer
	result *query.Result
	rows   *rows // nil for whole objects
}

// from says what the answer is worth. plan may be nil.
func (a *answering) from(s query.Stamp, plan *query.Plan) {
	a.ResourceVersion, a.Contact, a.Stale = s.ResourceVersion, s.Contact, s.Stale
	if plan != nil {
		a.Plan, a.Warnings = plan.String(), plan.Warnings
	}
}

// chunk is how much of an answer is written at a time.
const chunk = 1 << 16

// writeAnswer writes an answer bit by bit, so that it takes no memory for all of its objects.
func (s *Server) writeAnswer(w http.ResponseWriter, a *answering) error {
	buf, err := json.Marshal(a.Answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	if a.result != nil {
		name, first := "items", true
		if a.rows != nil {
			name = "rows"
		}
		buf = append(append(append(buf[:len(buf)-1], `,"`...), name...), `":[`...)
		err = a.texts(func(text []byte) error {
			if !first {
				buf = append(buf, ',')
			}
			first = false
			if buf = append(buf, text...); len(buf) < chunk {
				return nil
			}
			return s.write(w, &buf)
		})
		buf = append(buf, "]}"...)
	}
	buf = append(buf, '\n')
	if err == nil {
		err = s.write(w, &buf)
	}
	if err != nil {
		// The answer may have begun: all that is left is to cut it, so that nobody takes it for whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// texts calls take with the JSON of each object, or of its row, which is good until take returns.
func (a *answering) texts(take func(text []byte) error) error {
	if a.rows == nil {
		return a.result.AllJSON(func(_ string, text []byte) error { return take(text) })
	}
	for _, object := range a.result.All() {
		text, err := json.Marshal(a.rows.of(object))
		if err == nil {
			err = take(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes and empties a buffer, for which a client has as much time as for a part of a list.
func (s *Server) write(w http.ResponseWriter, buf *[]byte) error {
	patience := s.options.Handler.WriteTimeout
	if patience == 0 {
		patience = readapi.DefaultWriteTimeout
	}
	if patience > 0 {
		// not every server can do that
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	}
	_, err := w.Write(*buf)
	*buf = (*buf)[:0]
	return err
}
