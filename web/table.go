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
	"github.com/crdcache/crdcache/internal/display"
)

const (
	// maxTables limits the stored results of a user, maxKeys their keys in total; the newest result is
	// always stored.
	maxTables  = 16
	maxKeys    = 1 << 19
	maxAllKeys = 1 << 23
	maxRows    = 200
	maxQuery   = 8 << 10
)

// resultCache stores the keys of results while browsers scroll through them. Rows are read from the cache on
// request, so they are current. A result that was dropped is computed again. Equal results have equal ids,
// on every replica.
type resultCache struct {
	mu struct {
		sync.Mutex
		newestFirst []*tableKeys // most recently used first
	}
}

type tableKeys struct {
	user, typeID, scope string
	id                  string
	keys                []string
}

func newResultCache() *resultCache { return &resultCache{} }

// newTableKeys returns a result. Its id depends only on the type, the scope and the keys.
func newTableKeys(user string, typ *visibleType, keys []string) *tableKeys {
	hash := fnv.New128a()
	for _, text := range []string{typ.id, typ.scope.id()} {
		_, _ = hash.Write(append([]byte(text), 0)) // never fails
	}
	for _, key := range keys {
		_, _ = io.WriteString(hash, key)
		_, _ = hash.Write([]byte{0})
	}
	return &tableKeys{user, typ.id, typ.scope.id(), hex.EncodeToString(hash.Sum(nil)), keys}
}

// add stores a result, and drops the least recently used ones above the limits.
func (t *resultCache) add(table *tableKeys) {
	t.mu.Lock()
	defer t.mu.Unlock()
	retained, ownTables := []*tableKeys{table}, 1
	ownKeys, allKeys := len(table.keys), len(table.keys)
	for _, old := range t.mu.newestFirst {
		n, isOwn := len(old.keys), old.user == table.user
		if isOwn && old.id == table.id || isOwn && (ownTables == maxTables || ownKeys+n > maxKeys) ||
			allKeys+n > maxAllKeys {
			continue
		}
		if allKeys += n; isOwn {
			ownKeys += n
			ownTables++
		}
		retained = append(retained, old)
	}
	t.mu.newestFirst = retained
}

// get returns a result of a user if the user's scope of the type is unchanged, or nil.
func (t *resultCache) get(user, id string, typ *visibleType) *tableKeys {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, table := range t.mu.newestFirst {
		if table.user == user && table.id == id && table.typeID == typ.id && table.scope == typ.scope.id() {
			copy(t.mu.newestFirst[1:i+1], t.mu.newestFirst[:i])
			t.mu.newestFirst[0] = table
			return table
		}
	}
	return nil
}

// tableAnswer is the result of a query without its rows.
type tableAnswer struct {
	// Table is the id of the result.
	Table string `json:"table"`
	Total int    `json:"total"`
	// Objects is the number of all objects.
	Objects int `json:"objects"`
	// Plan describes the query plan in sentences. Warnings are possible mistakes in the query.
	Plan            []string `json:"plan"`
	Scan            bool     `json:"scan,omitempty"`
	Warnings        []string `json:"warnings,omitempty"`
	ResourceVersion string   `json:"resourceVersion"`
	Stale           bool     `json:"stale,omitempty"`
	Microseconds    int64    `json:"microseconds"`
}

func (h *Handler) table(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	table, result, err := h.find(r, typ)
	if err != nil {
		return nil, err
	}
	return tableAnswer{
		Table: table.id, Total: len(table.keys), Objects: result.Plan.Objects, Plan: describePlan(typ.scope,
			result.Plan), Scan: result.Plan.Scan,
		Warnings: result.Plan.Warnings, ResourceVersion: result.Freshness.ResourceVersion,
		Stale: result.Freshness.Stale, Microseconds: time.Since(began).Microseconds(),
	}, nil
}

func (h *Handler) find(r *http.Request, typ *visibleType) (*tableKeys, *query.Result, error) {
	q, eval, err := h.parseQuery(r, typ, r.FormValue("query"))
	if err != nil {
		return nil, nil, err
	}
	options := query.Options{SortBy: r.FormValue("sort"), Descending: r.FormValue("descending") != "",
		AllowScan: true}
	if options.SortBy == "" {
		options.Descending = false
	}
	if h.hidesValues(typ) && !plainSortKeys[options.SortBy] {
		return nil, nil, forbiddenError("cannot sort by hidden values")
	}
	result, err := eval.query(r.Context(), q, options)
	if err != nil {
		return nil, nil, err
	}
	table := newTableKeys(h.user(r), typ, result.Keys())
	h.tables.add(table)
	return table, result, nil
}

// plainSortKeys are the sort keys for objects with hidden values.
var plainSortKeys = map[string]bool{"": true, "name": true, "namespace": true, "age": true}

// parseQuery parses a query, and returns it with its evaluator. If it uses references, parseQuery waits until
// these are complete.
func (h *Handler) parseQuery(r *http.Request, typ *visibleType, text string) (query.Query,
	restrictedQuerier, error) {
	eval := h.evaluator(typ)
	if len(text) > maxQuery {
		return nil, eval, &statusError{http.StatusRequestEntityTooLarge,
			fmt.Errorf("the query has more than %d bytes", maxQuery)}
	}
	if strings.TrimSpace(text) == "" {
		return query.All(), eval, nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, eval, err
	}
	follows, _ := query.UsesReferences(q)
	if h.hidesValues(typ) && (follows || query.UsesWhere(q)) {
		return nil, eval, forbiddenError("cannot query hidden values")
	}
	if follows {
		if err := h.requireAll(r); err != nil {
			return nil, eval, err
		}
		view, err := h.graph.typeGraph(r.Context(), h.source, typ)
		if err != nil {
			return nil, eval, err
		}
		eval.querier = eval.querier.WithReferences(view)
	}
	return q, eval, nil
}

type rowsAnswer struct {
	From int        `json:"from"`
	Rows []tableRow `json:"rows"`
}

// tableRow has the cells of an object as text. The key has namespace and name. Dates are in the format of
// the object. A deleted object has no cells.
type tableRow struct {
	Key   string   `json:"key"`
	Cells []string `json:"cells,omitempty"`
	Gone  bool     `json:"gone,omitempty"`
}

func (h *Handler) rows(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	table := h.tables.get(h.user(r), r.FormValue("table"), typ)
	if table == nil {
		if table, _, err = h.find(r, typ); err != nil {
			return nil, err
		}
		if table.id != r.FormValue("table") {
			return nil, &statusError{http.StatusGone,
				errors.New("the objects have changed since this result: run the query again")}
		}
	}
	first, err := strconv.Atoi(r.FormValue("from"))
	if err != nil || first < 0 {
		return nil, errors.New("from must be a row number")
	}
	columns := display.NewColumns(h.tableColumns(typ))
	first = min(first, len(table.keys))
	out := rowsAnswer{From: first, Rows: []tableRow{}}
	for _, key := range table.keys[first:min(first+maxRows, len(table.keys))] {
		out.Rows = append(out.Rows, h.tableRow(typ, key, columns))
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
	}
	return out, nil
}

func (h *Handler) tableRow(typ *visibleType, key string, columns []display.Column) tableRow {
	object := h.content(typ, key)
	if object == nil {
		return tableRow{Key: key, Gone: true}
	}
	cells := make([]string, 0, len(columns))
	for _, c := range columns {
		cells = append(cells, cellText(c.Value(object.Object)))
	}
	return tableRow{Key: key, Cells: cells}
}

const maxCell = 300

func rawCell(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(display.DecodedCell(value))
}

func cellText(value any) string {
	text := rawCell(value)
	if len(text) > maxCell {
		text = strings.ToValidUTF8(text[:maxCell], "") + "…"
	}
	return text
}

func (f *errorAnswer) addPosition(err error) {
	var at *query.Error
	if !errors.As(err, &at) || at.Offset > len(at.Text) {
		return
	}
	end := min(at.Offset+max(at.Length, 1), len(at.Text))
	f.Error = at.Err.Error()
	f.Offset = len(utf16.Encode([]rune(at.Text[:at.Offset])))
	f.Length = cmp.Or(len(utf16.Encode([]rune(at.Text[at.Offset:end]))), 1)
}
