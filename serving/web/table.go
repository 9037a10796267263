package web

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/naming"
)

const (
	// maxTables limits the stored results of a user, maxKeys the keys in these results, and maxAllKeys
	// the keys of all users. The newest result is always stored.
	maxTables        = 16
	maxKeys          = 1 << 19
	maxAllKeys       = 1 << 23
	maxRowsPerAnswer = 200
	maxQueryBytes    = 8 << 10
)

// resultCache stores the keys of results while browsers scroll through them. Rows are read from the informers
// on request, so they are current. A result that was dropped is computed again. Equal results have equal ids
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

// add stores a result, and drops the least recently used results above the limits.
func (t *resultCache) add(table *tableKeys) {
	t.mu.Lock()
	defer t.mu.Unlock()
	retained, ownTables := []*tableKeys{table}, 1
	ownKeys, allKeys := len(table.keys), len(table.keys)
	for _, stored := range t.mu.newestFirst {
		keyCount, isOwn := len(stored.keys), stored.user == table.user
		if isOwn && (stored.id == table.id || ownTables == maxTables || ownKeys+keyCount > maxKeys) ||

			allKeys+keyCount > maxAllKeys {
			continue
		}
		if allKeys += keyCount; isOwn {
			ownKeys += keyCount
			ownTables++
		}
		retained = append(retained, stored)
	}
	t.mu.newestFirst = retained
}

// get returns a result of a user, or nil if it was dropped or the user's scope has changed.
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
	start := time.Now()
	table, result, err := h.runQuery(r, typ)
	if err != nil {
		return nil, err
	}
	return tableAnswer{
		Table: table.id, Total: len(table.keys), Objects: result.Plan.Objects, Plan: describePlan(typ.scope,
			result.Plan), Scan: result.Plan.Scan,
		Warnings: result.Plan.Warnings, ResourceVersion: result.Freshness.ResourceVersion,
		Stale: result.Freshness.Stale, Microseconds: time.Since(start).Microseconds(),
	}, nil
}

func (h *Handler) runQuery(r *http.Request, typ *visibleType) (*tableKeys, *query.Result, error) {
	q, querier, err := h.parseQuery(r, typ, r.FormValue("query"))
	if err != nil {
		return nil, nil, err
	}
	options := query.Options{SortBy: r.FormValue("sort"), Descending: r.FormValue("descending") != "",
		AllowScan: true}
	if options.SortBy == "" {
		options.Descending = false
	}
	if h.hidesValues(typ) && !metadataSortKeys[options.SortBy] {
		return nil, nil, forbiddenError("cannot sort by hidden values")
	}
	result, err := querier.query(r.Context(), q, options)
	if err != nil {
		return nil, nil, err
	}
	keys := result.Keys()
	if name := r.FormValue("name"); name != "" {
		keys = slices.DeleteFunc(slices.Clone(keys),
			func(key string) bool { return !strings.Contains(key, name) })
	}
	table := newTableKeys(h.user(r), typ, keys)
	h.tables.add(table)
	return table, result, nil
}

var metadataSortKeys = map[string]bool{"": true, "name": true, "namespace": true, "age": true}

// parseQuery parses a query. It returns a querier for it. If the query uses references, parseQuery waits
// until all references are known.
func (h *Handler) parseQuery(r *http.Request, typ *visibleType, text string) (query.Query,
	restrictedQuerier, error) {
	querier := h.evaluator(typ)
	if len(text) > maxQueryBytes {
		return nil, querier, &statusError{http.StatusRequestEntityTooLarge,
			fmt.Errorf("the query has more than %d bytes", maxQueryBytes)}
	}
	if strings.TrimSpace(text) == "" {
		return query.All(), querier, nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, querier, err
	}
	usesReferences, _ := query.UsesReferences(q)
	if h.hidesValues(typ) && (usesReferences || query.UsesWhere(q)) {
		return nil, querier, forbiddenError("cannot query hidden values")
	}
	if usesReferences {
		if err := h.requireAll(r); err != nil {
			return nil, querier, err
		}
		typeGraph, err := h.graph.typeGraph(r.Context(), h.source, typ)
		if err != nil {
			return nil, querier, err
		}
		querier.querier = querier.querier.WithReferences(typeGraph)
	}
	return q, querier, nil
}

type rowsAnswer struct {
	From int        `json:"from"`
	Rows []tableRow `json:"rows"`
}

// tableRow has the cells of an object as text. Dates have the format of the object. A deleted object has no
// cells.
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
		if table, _, err = h.runQuery(r, typ); err != nil {
			return nil, err
		}
		if table.id != r.FormValue("table") {
			return nil, &statusError{http.StatusGone,
				errors.New("the objects have changed since this result: run the query again")}
		}
	}
	firstRow, err := strconv.Atoi(r.FormValue("from"))
	if err != nil || firstRow < 0 {
		return nil, errors.New("from must be a row number")
	}
	columns := display.NewColumns(h.tableColumns(typ))
	firstRow = min(firstRow, len(table.keys))
	out := rowsAnswer{From: firstRow, Rows: []tableRow{}}
	for _, key := range table.keys[firstRow:min(firstRow+maxRowsPerAnswer, len(table.keys))] {
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
	return tableRow{Key: key, Cells: naming.Texts(columns,
		func(c display.Column) string { return cellText(c.Value(object.Object)) })}
}

const maxCellBytes = 300

func rawCell(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(display.DecodedCell(value))
}

func cellText(value any) string {
	text := rawCell(value)
	if len(text) > maxCellBytes {
		text = strings.ToValidUTF8(text[:maxCellBytes], "") + "…"
	}
	return text
}

func (answer *errorAnswer) addPosition(err error) {
	var queryErr *query.Error
	if !errors.As(err, &queryErr) || queryErr.Offset > len(queryErr.Text) {
		return
	}
	end := min(queryErr.Offset+max(queryErr.Length, 1), len(queryErr.Text))
	answer.Error = queryErr.Err.Error()
	answer.Offset = len(utf16.Encode([]rune(queryErr.Text[:queryErr.Offset])))
	answer.Length = cmp.Or(len(utf16.Encode([]rune(queryErr.Text[queryErr.Offset:end]))), 1)
}
