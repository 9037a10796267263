package web

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/printcolumn"
)

const (
	// maxTables is how many results of a user are remembered, and maxKeys how many keys these have in all,
	// besides the newest.
	maxTables = 16
	maxKeys   = 1 << 19
	// maxAllKeys is how many keys the results of all users have, besides the newest.
	maxAllKeys = 1 << 23
	// maxRows is how many rows are given at once.
	maxRows = 200
	// maxQuery is how long a query may be.
	maxQuery = 8 << 10
)

// tables remembers results through which browsers scroll: the keys alone. Rows are read from the cache when a
// browser asks for them, so that they are current. A result that is not remembered is computed again; its id
// says whether it is equal, on each replica.
type tables struct {
	mu struct {
		sync.Mutex
		newest []*tableKeys // the one that was used last comes first
	}
}

type tableKeys struct {
	user, typeID, scope string
	id                  string
	keys                []string
}

func newTables() *tables { return &tables{} }

// newTableKeys returns a result. Its id depends on the type, the scope and the keys, and on nothing else.
func newTableKeys(user string, k *kept, keys []string) *tableKeys {
	hash := fnv.New128a()
	for _, text := range []string{k.id, k.scope.id()} {
		_, _ = hash.Write(append([]byte(text), 0)) // never fails
	}
	for _, key := range keys {
		_, _ = io.WriteString(hash, key)
		_, _ = hash.Write([]byte{0})
	}
	return &tableKeys{user, k.id, k.scope.id(), hex.EncodeToString(hash.Sum(nil)), keys}
}

// add remembers a result. What was used longest ago makes way.
func (t *tables) add(table *tableKeys) {
	t.mu.Lock()
	defer t.mu.Unlock()
	remembered, own := []*tableKeys{table}, 1
	ownKeys, allKeys := len(table.keys), len(table.keys)
	for _, old := range t.mu.newest {
		n, mine := len(old.keys), old.user == table.user
		if mine && old.id == table.id || mine && (own == maxTables || ownKeys+n > maxKeys) ||
			allKeys+n > maxAllKeys {
			continue
		}
		if allKeys += n; mine {
			ownKeys += n
			own++
		}
		remembered = append(remembered, old)
	}
	t.mu.newest = remembered
}

// get returns a result of a user who still sees the same of a type; nil if there is none.
func (t *tables) get(user, id string, k *kept) *tableKeys {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, table := range t.mu.newest {
		if table.user == user && table.id == id && table.typeID == k.id && table.scope == k.scope.id() {
			copy(t.mu.newest[1:i+1], t.mu.newest[:i])
			t.mu.newest[0] = table
			return table
		}
	}
	return nil
}

// tableAnswer is the result of a query, without its rows.
type tableAnswer struct {
	// Table identifies the result in requests for its rows.
	Table string `json:"table"`
	Total int    `json:"total"`
	// Objects is how many objects there are in all.
	Objects int `json:"objects"`
	// Plan says in sentences how the result was found, Warnings why it may not be what was meant.
	Plan            []string `json:"plan"`
	Scan            bool     `json:"scan,omitempty"`
	Warnings        []string `json:"warnings,omitempty"`
	ResourceVersion string   `json:"resourceVersion"`
	Stale           bool     `json:"stale,omitempty"`
	Microseconds    int64    `json:"microseconds"`
}

func (h *Handler) table(r *http.Request) (any, error) {
	k, err := h.named(r)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	table, result, err := h.find(r, k)
	if err != nil {
		return nil, err
	}
	return tableAnswer{
		Table: table.id, Total: len(table.keys), Objects: result.Plan.Objects, Plan: explained(k.scope,
			result.Plan), Scan: result.Plan.Scan,
		Warnings: result.Plan.Warnings, ResourceVersion: result.Stamp.ResourceVersion,
		Stale: result.Stamp.Stale, Microseconds: time.Since(began).Microseconds(),
	}, nil
}

// find runs the query of a request in its order, and remembers the result.
func (h *Handler) find(r *http.Request, k *kept) (*tableKeys, *query.Result, error) {
	q, asker, err := h.ask(r, k, r.FormValue("query"))
	if err != nil {
		return nil, nil, err
	}
	options := query.Options{SortBy: r.FormValue("sort"), Descending: r.FormValue("descending") != "",
		AllowScan: true}
	if options.SortBy == "" {
		options.Descending = false
	}
	if h.hidden(k) && !openSort[options.SortBy] {
		return nil, nil, refuse("the order of hidden values is hidden, too")
	}
	result, err := asker.query(r.Context(), q, options)
	if err != nil {
		return nil, nil, err
	}
	table := newTableKeys(h.user(r), k, result.Keys())
	h.tables.add(table)
	return table, result, nil
}

// openSort is what objects with hidden values may be sorted by.
var openSort = map[string]bool{"": true, "name": true, "namespace": true, "age": true}

// ask reads a query and returns it with what answers it, which waits for references where it asks about
// these.
func (h *Handler) ask(r *http.Request, k *kept, text string) (query.Query, asker, error) {
	asker := h.asker(k)
	if len(text) > maxQuery {
		return nil, asker, &problem{http.StatusRequestEntityTooLarge,
			fmt.Errorf("a query may have %d bytes", maxQuery)}
	}
	if strings.TrimSpace(text) == "" {
		return query.All(), asker, nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, asker, err
	}
	follows, _ := query.FollowsReferences(q)
	if h.hidden(k) && (follows || query.LooksIntoObjects(q)) {
		return nil, asker, refuse("the values of these objects are hidden, also from queries")
	}
	if follows {
		if err := h.needAll(r); err != nil {
			return nil, asker, err
		}
		view, err := h.graph.view(r.Context(), h.source, k)
		if err != nil {
			return nil, asker, err
		}
		asker.querier = asker.querier.WithReferences(view)
	}
	return q, asker, nil
}

// rowsAnswer has some rows of a result.
type rowsAnswer struct {
	From int        `json:"from"`
	Rows []tableRow `json:"rows"`
}

// tableRow has the cells of an object as text: namespace and name are in the key. Dates are as the object has
// them. An object that is gone has none.
type tableRow struct {
	Key   string   `json:"key"`
	Cells []string `json:"cells,omitempty"`
	Gone  bool     `json:"gone,omitempty"`
}

func (h *Handler) rows(r *http.Request) (any, error) {
	k, err := h.named(r)
	if err != nil {
		return nil, err
	}
	table := h.tables.get(h.user(r), r.FormValue("table"), k)
	if table == nil {
		if table, _, err = h.find(r, k); err != nil {
			return nil, err
		}
		if table.id != r.FormValue("table") {
			return nil, &problem{http.StatusGone,
				errors.New("the objects have changed since this result: ask again")}
		}
	}
	from, err := strconv.Atoi(r.FormValue("from"))
	if err != nil || from < 0 {
		return nil, errors.New("from is the number of a row")
	}
	columns := printcolumn.New(h.declared(k))
	from = min(from, len(table.keys))
	out := rowsAnswer{From: from, Rows: []tableRow{}}
	for _, key := range table.keys[from:min(from+maxRows, len(table.keys))] {
		out.Rows = append(out.Rows, h.tableRow(k, key, columns))
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
	}
	return out, nil
}

func (h *Handler) tableRow(k *kept, key string, columns []printcolumn.Column) tableRow {
	object := h.content(k, key)
	if object == nil {
		return tableRow{Key: key, Gone: true}
	}
	cells := make([]string, 0, len(columns))
	for _, c := range columns {
		cells = append(cells, cellText(c.Value(object.Object)))
	}
	return tableRow{Key: key, Cells: cells}
}

// maxCell bounds the bytes of a cell.
const maxCell = 300

func cellText(value any) string {
	if value == nil {
		return ""
	}
	text := fmt.Sprint(printcolumn.Decoded(value))
	if len(text) > maxCell {
		text = strings.ToValidUTF8(text[:maxCell], "") + "…"
	}
	return text
}

// place tells where in a query an error is.
func (f *failure) place(err error) {
	var at *query.Error
	if !errors.As(err, &at) || at.Offset > len(at.Text) {
		return
	}
	end := min(at.Offset+max(at.Length, 1), len(at.Text))
	f.Error = at.Err.Error()
	f.Offset = len(utf16.Encode([]rune(at.Text[:at.Offset])))
	f.Length = cmp.Or(len(utf16.Encode([]rune(at.Text[at.Offset:end]))), 1)
}
