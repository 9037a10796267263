package web

import (
	"cmp"
	"errors"
	"fmt"
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
	// maxTables is how many results are kept for scrolling, the latest that were looked at.
	maxTables = 16
	// maxKeys is how many keys these have together at most, besides the latest of them.
	maxKeys = 1 << 19
	// maxRows is how many rows are given at once.
	maxRows = 200
	// maxQuery is how long a query may be.
	maxQuery = 8 << 10
)

// tables are results that a browser scrolls through: the keys alone. What the objects say is read when rows are asked for,
// so that it is that of now.
type tables struct {
	mu struct {
		sync.Mutex
		last   uint64
		newest []*tableKeys // the one that was looked at last comes first
	}
}

type tableKeys struct {
	id, typeID, scope string
	keys              []string
}

func newTables() *tables { return &tables{} }

func (t *tables) add(k *kept, keys []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.last++
	id := strconv.FormatUint(t.mu.last, 36)
	stay, sum := 0, len(keys)
	for stay < min(len(t.mu.newest), maxTables-1) && sum+len(t.mu.newest[stay].keys) <= maxKeys {
		sum += len(t.mu.newest[stay].keys)
		stay++
	}
	t.mu.newest = append([]*tableKeys{{id, k.id, k.scope.id(), keys}}, t.mu.newest[:stay]...)
	return id
}

// get returns a result of those who see the same of a type; nil for others, and what has been forgotten.
func (t *tables) get(id string, k *kept) *tableKeys {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, table := range t.mu.newest {
		if table.id == id && table.typeID == k.id && table.scope == k.scope.id() {
			copy(t.mu.newest[1:i+1], t.mu.newest[:i])
			t.mu.newest[0] = table
			return table
		}
	}
	return nil
}

// tableAnswer is the result of a query, without its rows.
type tableAnswer struct {
	// Table is what rows are asked for by, as long as it is remembered.
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
	q, asker, err := h.ask(r, k, r.FormValue("query"))
	if err != nil {
		return nil, err
	}
	options := query.Options{SortBy: r.FormValue("sort"), Descending: r.FormValue("descending") != "", AllowScan: true}
	if options.SortBy == "" {
		options.Descending = false
	}
	if h.hidden(k) && !openSort[options.SortBy] {
		return nil, refuse("the order of hidden values is hidden, too")
	}
	began := time.Now()
	result, err := asker.query(r.Context(), q, options)
	if err != nil {
		return nil, err
	}
	keys := result.Keys()
	return tableAnswer{
		Table: h.tables.add(k, keys), Total: len(keys), Objects: result.Plan.Objects, Plan: explained(k.scope, result.Plan), Scan: result.Plan.Scan,
		Warnings: result.Plan.Warnings, ResourceVersion: result.Stamp.ResourceVersion, Stale: result.Stamp.Stale, Microseconds: time.Since(began).Microseconds(),
	}, nil
}

// openSort is what objects with hidden values may be sorted by.
var openSort = map[string]bool{"": true, "name": true, "namespace": true, "age": true}

// ask reads a query and returns it with what answers it, which waits for references where it asks about these.
func (h *Handler) ask(r *http.Request, k *kept, text string) (query.Query, asker, error) {
	asker := h.asker(k)
	if len(text) > maxQuery {
		return nil, asker, &problem{http.StatusRequestEntityTooLarge, fmt.Errorf("a query may have %d bytes", maxQuery)}
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
		if all, err := h.seesAll(r); err != nil || !all {
			return nil, asker, cmp.Or(err, refuse("queries about references are for who sees all types in all namespaces"))
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

// tableRow has the cells of an object as text: namespace and name are in the key. Dates are as the object has them. An
// object that is gone has none.
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
	table := h.tables.get(r.FormValue("table"), k)
	if table == nil {
		return nil, &problem{http.StatusGone, errors.New("this result has been forgotten; ask again")}
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
