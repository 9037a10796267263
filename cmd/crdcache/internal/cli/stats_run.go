package cli

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// statsReport is what is told of one type; it is what -o json gives.
type statsReport struct {
	Type       string        `json:"type"`
	Storage    string        `json:"storage"`
	Objects    int           `json:"objects"`
	Compressed int           `json:"compressed,omitempty"`
	SyncTime   string        `json:"syncTime"`
	Bytes      int64         `json:"bytes"`
	Body       int64         `json:"objectBytes"`
	Table      int64         `json:"tableBytes"`
	Indexes    []indexReport `json:"indexes"`
}

// indexReport is what is told of one index.
type indexReport struct {
	Name    string `json:"name"`
	Values  int    `json:"values"`
	Entries int    `json:"entries"`
	// Objects counts those with a value.
	Objects int          `json:"objects"`
	Bytes   int64        `json:"bytes"`
	Top     []valueCount `json:"top,omitempty"`
	// Skipped says what the index leaves out, and why; nil for indexes that no config declares, and when nothing is.
	Skipped *skipped `json:"skipped,omitempty"`
	// Reported are the keys of the first objects without a value, for an index with "missing: report".
	Reported []string `json:"reported,omitempty"`
	// Duplicates are the values that several objects have, the most frequent first, for an index with "unique: warn".
	Duplicates []valueCount `json:"duplicates,omitempty"`
}

// skipped counts what an index leaves out; see indexers.Stats.
type skipped struct {
	Missing uint64 `json:"missing,omitempty"`
	Type    uint64 `json:"type,omitempty"`
	Limit   uint64 `json:"limit,omitempty"`
	When    uint64 `json:"when,omitempty"`
}

type valueCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// run syncs the types, and reports on each that is synced.
func (o *statsOptions) run(ctx context.Context) error {
	var begun time.Time
	return o.Sync(ctx, session.Steps{
		Check: func(*session.Types, session.Indexes) error {
			begun = time.Now()
			return nil
		},
		Use: func(ctx context.Context, _ *session.Types, indexes session.Indexes, synced []session.Cache) error {
			reports := []statsReport{}
			for _, c := range synced {
				r, err := o.report(ctx, c, indexes[c.Resource.GVR])
				if err != nil {
					return err
				}
				r.SyncTime = c.Informer.Status().Since.Sub(begun).Round(time.Millisecond).String()
				reports = append(reports, r)
			}
			return o.print(reports)
		},
	})
}

func (o *statsOptions) report(ctx context.Context, c session.Cache, indexes []*indexers.Index) (statsReport, error) {
	if err := c.Informer.Compress(ctx); err != nil {
		return statsReport{}, err
	}
	s := c.Informer.Stats()
	r := statsReport{
		Type: c.Resource.String(), Storage: s.Storage, Objects: s.Objects, Compressed: s.Compressed,
		Bytes: s.Bytes(), Body: s.ObjectBytes, Table: s.TableBytes, Indexes: []indexReport{},
	}
	querier := query.New(query.ForInformer(c.Informer), indexes...)
	troubles, err := findTroubles(ctx, c, querier, indexes)
	if err != nil {
		return r, err
	}
	for _, x := range s.Indexes {
		one := troubles[x.Name]
		one.Name, one.Values, one.Entries, one.Bytes = x.Name, x.Values, x.Entries, x.Bytes
		if one.Objects, err = querier.Count(ctx, query.Exists(x.Name), query.Options{AllowScan: true}); err != nil {
			return r, err
		}
		if one.Top, err = o.topValues(ctx, querier, x.Name); err != nil {
			return r, err
		}
		if x.Name != cache.NamespaceIndex || c.Resource.Scope == discovery.Namespaced {
			r.Indexes = append(r.Indexes, one)
		}
	}
	return r, nil
}

// findTroubles says of each index of the config what is not as the config wants it.
func findTroubles(ctx context.Context, c session.Cache, querier *query.Querier, indexes []*indexers.Index) (map[string]indexReport, error) {
	met, err := c.IndexStats(ctx, indexes)
	if err != nil {
		return nil, err
	}
	out := map[string]indexReport{}
	for i, index := range indexes {
		one := indexReport{Reported: met[i].Reported}
		left := skipped{Missing: met[i].SkippedMissing, Type: met[i].SkippedType, Limit: met[i].SkippedLimit, When: met[i].SkippedWhen}
		if left != (skipped{}) {
			one.Skipped = &left
		}
		if index.Unique {
			duplicates, err := querier.Duplicates(ctx, index.Name)
			if err != nil {
				return nil, err
			}
			one.Duplicates = valueCounts(duplicates)
		}
		out[index.Name] = one
	}
	return out, nil
}

// topValues are the most frequent values of an index.
func (o *statsOptions) topValues(ctx context.Context, querier *query.Querier, index string) ([]valueCount, error) {
	if o.top == 0 {
		return nil, nil
	}
	values, err := querier.Values(ctx, index, query.All(), query.Options{AllowScan: true})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(values, func(a, b query.ValueCount) int { return b.Count - a.Count })
	return valueCounts(values[:min(len(values), o.top)]), nil
}

// valueCounts is values as they are reported.
func valueCounts(values []query.ValueCount) []valueCount {
	var out []valueCount
	for _, v := range values {
		value := v.Value
		if value == indexers.Null {
			value = "(null)"
		}
		out = append(out, valueCount{value, v.Count})
	}
	return out
}
