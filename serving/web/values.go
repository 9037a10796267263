package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

const maxFrequentValues = 12

type valuesAnswer struct {
	Values []valueCount `json:"values"`
	// MoreValues is the number of omitted values, and MoreObjects the number of objects with these
	// values.
	MoreValues  int `json:"more,omitempty"`
	MoreObjects int `json:"rest,omitempty"`
}

type valueCount struct {
	Text  string `json:"text"`
	Query string `json:"query"` // the condition that matches its objects
	Count int    `json:"count"`
}

func (h *Handler) values(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	q, querier, err := h.parseQuery(r, typ, r.FormValue("query"))
	if err != nil {
		return nil, err
	}
	name := r.FormValue("index")
	counts, err := querier.values(r.Context(), name, q)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(counts, func(a, b query.ValueCount) int { return cmp.Compare(b.Count, a.Count) })
	out := valuesAnswer{Values: []valueCount{}}
	for i, c := range counts {
		if i >= maxFrequentValues {
			out.MoreValues++
			out.MoreObjects += c.Count
			continue
		}
		out.Values = append(out.Values, valueCount{Text: valueText(c), Query: conditionFor(name, c.Parts),
			Count: c.Count})
	}
	return out, nil
}

func valueText(c query.ValueCount) string {
	parts := slices.Clone(c.Parts)
	for i, part := range parts {
		if part == indexers.Null {
			parts[i] = "(none)"
		}
	}
	return strings.Join(parts, " / ")
}

func conditionFor(index string, parts []string) string { return query.Eq(index, parts...).String() }
