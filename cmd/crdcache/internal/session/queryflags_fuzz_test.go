package session

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

const gizmoIndexConfig = `
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: a}
spec:
  resources:
  - name: things
    match: {group: example.com, resource: gizmos}
    indexes:
    - {name: color, path: .spec.color}
    - {name: size, path: .spec.size, type: Int, order: Sorted}
`

// gizmoQuerier is a querier of gizmos with a text index and a sorted index.
func gizmoQuerier(f testing.TB, colors ...string) *query.Querier {
	f.Helper()
	loaded, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(gizmoIndexConfig)})
	if err != nil {
		f.Fatal(err)
	}
	indexes := loaded.Resources[0].Indexes
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers.CompileIndexes(indexes...).Indexers())
	for i, color := range colors {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": color,
			"size": int64(i / 2)}}}
		u.SetName("g" + strconv.Itoa(i))
		if err := store.Add(u); err != nil {
			f.Fatal(err)
		}
	}
	return query.New(query.ForIndexer(store), indexes...)
}

// FuzzConditions checks that an invalid condition causes a usage error, which shows the position of a syntax
// error. It also checks that each object matches a valid condition either with --index or with --not.
func FuzzConditions(f *testing.F) {
	for _, seed := range [][2]string{
		{"color=red", ".spec"}, {"color in (red, 'b l')", "@.spec.size > 1"}, {"color in (",
			"@."}, {"color in ()", ""}, {"size>=1 && !color", ".a[?(@.b"},
		{"size in [1, 2)", "@.spec.size =~ /x/"}, {"size<x", ".spec['a.b']"}, {"nope",
			"["}, {"color^=r || (size=1", "@ == \"\\u12\""}, {"é=\x00", "\xff"},
	} {
		f.Add(seed[0], seed[1])
	}
	querier := gizmoQuerier(f, "red", "blue", "", "b l", "é")
	var usageErr *UsageError
	runQuery := func(t *testing.T, flags QueryFlags) ([]string, error) {
		q, err := flags.Query()
		if err == nil {
			var keys []string
			if keys, err = querier.Keys(t.Context(), q, query.Options{AllowScan: true}); err == nil {
				return keys, nil
			}
			err = ExplainQuery(err)
		}
		if !errors.As(err, new(*UsageError)) || err.Error() == "" {
			t.Errorf("%+v: %v is not a usage error", flags, err)
		}
		if errors.As(err, &usageErr) && usageErr.Multiline && !strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: no position in %v", flags, err)
		}
		return nil, err
	}
	f.Fuzz(func(t *testing.T, index, where string) {
		with, err := runQuery(t, QueryFlags{indexConditions: []string{index}})
		without, notErr := runQuery(t, QueryFlags{indexConditions: []string{"!(" + index + ")"}})
		if (err == nil) != (notErr == nil) {
			t.Errorf("%q: --index returned the error %v, negated %v, want errors of both or of neither", index,
				err,
				notErr)
		}
		if all := append(with, without...); err == nil &&
			len(slices.Compact(slices.Sorted(slices.Values(all)))) != 5 || err == nil && len(all) != 5 {
			t.Errorf("%q: --index returned %q, negated %q, want each object once", index, with, without)
		}
		_, _ = runQuery(t, QueryFlags{where: []string{where}})
	})
}

// FuzzContinue checks that any token is rejected or continues at a position in the order.
func FuzzContinue(f *testing.F) {
	querier := gizmoQuerier(f, "red", "blue", "green", "red", "blue")
	for _, options := range []query.Options{{Limit: 2}, {Limit: 1, SortBy: "size"},
		{Limit: 3, SortBy: "size", Descending: true}} {
		for {
			result, err := querier.Query(context.Background(), query.All(), options)
			if err != nil {
				f.Fatal(err)
			}
			if options.Continue = result.Continue; options.Continue == "" {
				break
			}
			text, err := base64.RawURLEncoding.DecodeString(options.Continue)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, options.SortBy != "", options.Descending)
		}
	}
	f.Add([]byte("{}"), false, false)
	f.Add([]byte(`{"k":"a/b/c","q":1}`), true, false)
	f.Fuzz(func(t *testing.T, token []byte, sorted, descending bool) {
		options := query.Options{}
		if sorted {
			options.SortBy, options.Descending = "size", descending
		}
		all, err := querier.Keys(t.Context(), query.All(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(token), base64.RawURLEncoding.EncodeToString(token)} {
			options.Continue = text
			rest, err := querier.Keys(t.Context(), query.All(), options)
			if err != nil {
				if !errors.Is(err, query.ErrContinue) || !errors.As(ExplainQuery(err), new(*UsageError)) {
					t.Errorf("the token %q: got the error %v, want ErrContinue as a usage error", text, err)
				}
				continue
			}
			if !slices.Equal(rest, all[len(all)-len(rest):]) {
				t.Errorf("keys after the token %q = %q, want the end of %q", text, rest, all)
			}
		}
	})
}
