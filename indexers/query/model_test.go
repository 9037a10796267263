package query_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/indexers/query"
)

// predicate reports whether an object matches a query, without indexes.
type predicate func(u *unstructured.Unstructured) bool

// randomQuery returns a random query over widgets, and the predicate with the same meaning.
func randomQuery(random *rand.Rand, depth int) (query.Query, predicate) {
	if depth > 0 && random.IntN(3) > 0 {
		switch random.IntN(5) {
		case 0:
			q, p := randomQuery(random, depth-1)
			return query.Not(q), func(u *unstructured.Unstructured) bool { return !p(u) }
		case 1, 2:
			a, pa := randomQuery(random, depth-1)
			b, pb := randomQuery(random, depth-1)
			return query.Or(a, b), func(u *unstructured.Unstructured) bool { return pa(u) || pb(u) }
		default:
			a, pa := randomQuery(random, depth-1)
			b, pb := randomQuery(random, depth-1)
			return query.And(a, b), func(u *unstructured.Unstructured) bool { return pa(u) && pb(u) }
		}
	}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	switch random.IntN(25) {
	case 0:
		team := pick("edge", "payments", "none")
		return query.Eq("team", team),
			func(u *unstructured.Unstructured) bool { return u.GetLabels()["example.com/team"] == team }
	case 1:
		return query.In("class", "gold", "a/b", "none"), func(u *unstructured.Unstructured) bool {
			c, ok := stringAt(u, "spec", "class")
			return ok && (c == "gold" || c == "a/b")
		}
	case 2:
		return query.Missing("class"), func(u *unstructured.Unstructured) bool {
			_, ok := stringAt(u, "spec", "class")
			return !ok
		}
	case 3:
		return query.Exists("host"),
			func(u *unstructured.Unstructured) bool { return len(specList(u, "hosts")) > 0 }
	case 4:
		prefix := pick("www.", "w", "", "api.example.com", "zzz")
		return query.Prefix("host", prefix), func(u *unstructured.Unstructured) bool {
			return slices.ContainsFunc(specList(u, "hosts"),
				func(v any) bool { return strings.HasPrefix(strings.ToLower(v.(string)), prefix) })
		}
	case 5, 6:
		return randomComparison(random, "weight", func(u *unstructured.Unstructured) []int64 {
			if w, ok, _ := unstructured.NestedInt64(u.Object, "spec", "weight"); ok {
				return []int64{w}
			}
			return nil
		})
	case 7:
		return randomComparison(random, "weights", func(u *unstructured.Unstructured) (out []int64) {
			for _, w := range specList(u, "weights") {
				out = append(out, w.(int64))
			}
			return out
		})
	case 8:
		day := time.Date(2026, 1, 1+random.IntN(22), 12, 0, 0, 0, time.FixedZone("", 3600))
		return query.Less("expiry", day.Format(time.RFC3339)), func(u *unstructured.Unstructured) bool {
			s, ok := stringAt(u, "status", "notAfter")
			at, _ := time.Parse(time.RFC3339, s)
			return ok && at.Before(day)
		}
	case 9:
		return query.Eq("size", "1Gi"), func(u *unstructured.Unstructured) bool {
			s, _ := stringAt(u, "spec", "size")
			return s == "1Gi" || s == "1024Mi"
		}
	case 10:
		return query.Prefix("place", "a"), func(u *unstructured.Unstructured) bool {
			_, ok := stringAt(u, "spec", "class")
			return ok && u.GetNamespace() == "a"
		}
	case 11:
		class, weight := pick("gold", "a/b", ""), int64(random.IntN(12)-2)
		return query.AtLeast("ordered", class, fmt.Sprint(weight)), func(u *unstructured.Unstructured) bool {
			c, ok := stringAt(u, "spec", "class")
			w, has, _ := unstructured.NestedInt64(u.Object, "spec", "weight")
			return ok && has && (c > class || c == class && w >= weight)
		}
	case 12:
		return query.Eq("condition", "Ready", "False"), func(u *unstructured.Unstructured) bool {
			all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			return slices.ContainsFunc(all, func(v any) bool {
				return v.(m)["type"] == "Ready" && v.(m)["status"] == "False"
			})
		}
	case 13:
		return query.Label("tier in (web),example.com/team"), func(u *unstructured.Unstructured) bool {
			return u.GetLabels()["tier"] == "web" && u.GetLabels()["example.com/team"] != ""
		}
	case 14:
		team := pick("edge", "payments", "core", "none")
		return query.Label("example.com/team=" + team),
			func(u *unstructured.Unstructured) bool { return u.GetLabels()["example.com/team"] == team }
	case 15:
		tier := pick("web", "db", "wax")
		return query.Label("tier in (" + tier + ",none),example.com/team notin (core)"),
			func(u *unstructured.Unstructured) bool {
				return u.GetLabels()["tier"] == tier && u.GetLabels()["example.com/team"] != "core"
			}
	case 16:
		return query.Where("@.spec.weight >= 4"), func(u *unstructured.Unstructured) bool {
			w, ok, _ := unstructured.NestedInt64(u.Object, "spec", "weight")
			return ok && w >= 4
		}
	case 17, 18:
		part := pick("example", ".", "EXAMPLE.", "", "/", "é/", "*", "\\ö")
		return query.Contains("host", part), func(u *unstructured.Unstructured) bool {
			return slices.ContainsFunc(specList(u, "hosts"),
				func(v any) bool {
					return strings.Contains(strings.ToLower(v.(string)), strings.ToLower(part))
				})
		}
	case 19:
		expression := regexp.MustCompile(pick("^www[.]", "org$", ".", "^$", "é|x", `[/\\]`))
		return query.Matches("host", expression.String()), func(u *unstructured.Unstructured) bool {
			return slices.ContainsFunc(specList(u, "hosts"),
				func(v any) bool { return expression.MatchString(strings.ToLower(v.(string))) })
		}
	case 20:
		prefix := netip.MustParsePrefix(pick("10.0.0.0/8", "10.1.2.3/32", "0.0.0.0/0", "2001:db8::/32",
			"::/0", "11.0.0.0/31", "10.200.0.0/9"))
		field := pick("address", "addresses")
		text := prefix.String()
		if random.IntN(4) == 0 && text == "10.0.0.0/8" {
			text = "::ffff:10.0.0.0/104"
		}
		return query.Within(field, text), func(u *unstructured.Unstructured) bool {
			all := specList(u, field)
			if v, ok := specString(u, field); ok {
				all = append(all, v)
			}
			return slices.ContainsFunc(all, func(v any) bool {
				address, err := netip.ParseAddr(v.(string))
				return err == nil && prefix.Masked().Contains(address.Unmap())
			})
		}
	case 22:
		prefix := netip.MustParsePrefix(pick("10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0", "2001::/16",
			"10.1.2.3/32"))
		return query.Within("network", prefix.String()), func(u *unstructured.Unstructured) bool {
			v, _ := stringAt(u, "spec", "network")
			narrow, err := netip.ParsePrefix(v)
			return err == nil && narrow.Bits() >= prefix.Bits() && prefix.Contains(narrow.Addr())
		}
	case 21:
		hours := random.IntN(600) - 300
		return query.AtLeast("expiry", "now"+relativeText(hours)), func(u *unstructured.Unstructured) bool {
			s, ok := stringAt(u, "status", "notAfter")
			at, _ := time.Parse(time.RFC3339, s)
			return ok && !at.Before(modelNow.Add(time.Duration(hours)*time.Hour))
		}
	default:
		ns := pick("a", "b", "", "none")
		return query.Namespace(ns, "c"), func(u *unstructured.Unstructured) bool {
			return u.GetNamespace() == ns || u.GetNamespace() == "c"
		}
	}
}

// randomComparison compares an index over integers with a random bound. valuesOf reads these integers from an
// object.
func randomComparison(random *rand.Rand, index string,
	valuesOf func(*unstructured.Unstructured) []int64) (query.Query, predicate) {
	bound := int64(random.IntN(14) - 4)
	upper := bound + int64(random.IntN(4))
	text := strconv.FormatInt(bound, 10)
	anyWeight := func(test func(int64) bool) predicate {
		return func(u *unstructured.Unstructured) bool { return slices.ContainsFunc(valuesOf(u), test) }
	}
	switch random.IntN(6) {
	case 0:
		return query.Less(index, text), anyWeight(func(w int64) bool { return w < bound })
	case 1:
		return query.AtMost(index, text), anyWeight(func(w int64) bool { return w <= bound })
	case 2:
		return query.Greater(index, text), anyWeight(func(w int64) bool { return w > bound })
	case 3:
		return query.AtLeast(index, text), anyWeight(func(w int64) bool { return w >= bound })
	case 4:
		return query.Range(index, text, strconv.FormatInt(upper, 10)),
			anyWeight(func(w int64) bool { return w >= bound && w < upper })
	default:
		return query.Eq(index, text), anyWeight(func(w int64) bool { return w == bound })
	}
}

// relativeText formats a number of hours as days and hours with a sign.
func relativeText(hours int) string {
	sign := "+"
	if hours < 0 {
		sign, hours = "-", -hours
	}
	return fmt.Sprintf("%s%dd%dh", sign, hours/24, hours%24)
}

var modelNow = time.Date(2026, 1, 10, 12, 30, 0, 0, time.UTC)

func specString(u *unstructured.Unstructured, field string) (any, bool) {
	s, ok := stringAt(u, "spec", field)
	return s, ok
}

func stringAt(u *unstructured.Unstructured, fields ...string) (string, bool) {
	s, ok, _ := unstructured.NestedString(u.Object, fields...)
	return s, ok
}

func specList(u *unstructured.Unstructured, field string) []any {
	l, _, _ := unstructured.NestedSlice(u.Object, "spec", field)
	return l
}

// expectedKeys returns the sorted keys of the objects that match a predicate.
func expectedKeys(objects []*unstructured.Unstructured, p predicate) []string {
	keys := []string{}
	sorted := slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return comparePairs(a.GetNamespace(), b.GetNamespace(), a.GetName(), b.GetName())
	})
	for _, u := range sorted {
		if p(u) {
			keys = append(keys, keyOf(u))
		}
	}
	return keys
}

func comparePairs(a, b, c, d string) int {
	if r := strings.Compare(a, b); r != 0 {
		return r
	}
	return strings.Compare(c, d)
}

// checkAgainstModel compares the results of random queries over random objects with the results of their
// predicates.
func checkAgainstModel(t *testing.T, seed uint64, rounds, size int,
	newQuerier func(testing.TB, ...*unstructured.Unstructured) *query.Querier) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	nonEmpty := 0
	for range rounds {
		var objects []*unstructured.Unstructured
		for n := range random.IntN(size) {
			objects = append(objects, randomWidget(random, n))
		}
		querier := newQuerier(t, objects...)
		for range 25 {
			q, p := randomQuery(random, 3)
			want := expectedKeys(objects, p)
			if len(want) > 0 {
				nonEmpty++
			}
			checkQuery(t, random, querier, q, want, objects)
			if t.Failed() {
				t.Fatalf("the failures are for the query %s over %d objects", q, len(objects))
			}
		}
	}
	if nonEmpty < rounds {
		t.Errorf("%d queries found an object, want at least %d", nonEmpty, rounds)
	}
}

// checkQuery verifies that Keys, Count, pages, orders and the query's text all agree with the wanted keys.
func checkQuery(t *testing.T, random *rand.Rand, querier *query.Querier, q query.Query, want []string,
	objects []*unstructured.Unstructured) {
	t.Helper()
	ctx, scanOptions := t.Context(), query.Options{AllowScan: true, Now: modelNow}
	got, err := querier.Keys(ctx, q, scanOptions)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Keys: %v (-want +got):\n%s", err, diff)
	}
	n, err := querier.Count(ctx, q, scanOptions)
	if err != nil || n != len(want) {
		t.Errorf("Count = %d, %v; want %d", n, err, len(want))
	}
	// The text parses to an equivalent query.
	parsed, err := query.Parse(q.String())
	if err != nil || parsed.String() != q.String() {
		t.Errorf("Parse(%s) = %v, %v; want the same query", q, parsed, err)
	} else if got, err := querier.Keys(ctx, parsed, scanOptions); err != nil || !slices.Equal(got, want) {
		t.Errorf("Keys of the parsed query = %v, %v; want %v", got, err, want)
	}
	// AllowScan does not change the result.
	if got, err := querier.Keys(ctx, q, query.Options{Now: modelNow}); !isScan(err) &&
		(err != nil || !slices.Equal(got, want)) {
		t.Errorf("Keys without scans = %v, %v; want %v or a ScanError", got, err, want)
	}
	limit := 1 + random.IntN(7)
	if got := queryAllPages(t, querier, q, query.Options{AllowScan: true, Limit: limit,
		Now: modelNow}); !slices.Equal(got, want) {
		t.Errorf("keys in pages of %d = %v, want %v", limit, got, want)
	}
	sortBy, descending := orders[random.IntN(len(orders))], random.IntN(2) == 0
	options := query.Options{AllowScan: true, SortBy: sortBy, Descending: descending, Now: modelNow}
	sorted, err := querier.Keys(ctx, q, options)
	if want := sortedBy(want, objects, sortBy, descending); err != nil || !slices.Equal(sorted, want) {
		t.Errorf("Keys by %s, descending %v: %v (-want +got):\n%s", sortBy, descending, err,
			cmp.Diff(want, sorted))
	}
	options.Limit = limit
	if got := queryAllPages(t, querier, q, options); !slices.Equal(got, sorted) {
		t.Errorf("keys by %s in pages of %d (-all +pages):\n%s", sortBy, limit, cmp.Diff(sorted, got))
	}
}

var orders = []string{"weight", "host", "weights", "ordered", "name", "age", "weight, host desc",
	"namespace desc, age, weights", "age desc, name desc"}

func isScan(err error) bool {
	var scan *query.ScanError
	return errors.As(err, &scan)
}

func queryAllPages(t *testing.T, querier *query.Querier, q query.Query, options query.Options) []string {
	t.Helper()
	keys := []string{}
	for {
		r, err := querier.Query(context.Background(), q, options)
		if err != nil {
			t.Error(err)
			return nil
		}
		if r.Len() > options.Limit || r.Len() < options.Limit && r.Continue != "" {
			t.Errorf("a page has %d objects and the token %q, want %d objects or the last page", r.Len(),
				r.Continue, options.Limit)
		}
		keys = append(keys, r.Keys()...)
		if r.Continue == "" {
			return keys
		}
		options.Continue = r.Continue
	}
}

// sortedBy sorts keys by several terms, each with an optional desc.
func sortedBy(keys []string, objects []*unstructured.Unstructured, by string, descending bool) []string {
	byKey := map[string]*unstructured.Unstructured{}
	for _, u := range objects {
		byKey[keyOf(u)] = u
	}
	terms := strings.Split(by, ", ")
	sorted := slices.Clone(keys)
	slices.SortStableFunc(sorted, func(a, b string) int {
		for _, term := range terms {
			name, reversed := strings.CutSuffix(term, " desc")
			down := reversed != descending
			va, hasA := sortValueOf(byKey[a], name, down)
			vb, hasB := sortValueOf(byKey[b], name, down)
			order := strings.Compare(va, vb)
			switch {
			case hasA && !hasB:
				return -1
			case hasB && !hasA:
				return 1
			case down:
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	return sorted
}

// sortValueOf returns a text that sorts like the object's value in an order, and whether there is a value.
func sortValueOf(u *unstructured.Unstructured, name string, descending bool) (string, bool) {
	var values []string
	number := func(w int64) string { return fmt.Sprintf("%05d", w+1000) }
	weight, hasWeight, _ := unstructured.NestedInt64(u.Object, "spec", "weight")
	switch name {
	case "name":
		return u.GetName(), true
	case "namespace":
		return u.GetNamespace(), true
	case "age":
		if created := u.GetCreationTimestamp(); !created.IsZero() {
			values = append(values, fmt.Sprintf("%015d", 1e12-created.Unix()))
		}
	case "weight":
		if hasWeight {
			values = append(values, number(weight))
		}
	case "weights":
		for _, w := range specList(u, "weights") {
			values = append(values, number(w.(int64)))
		}
	case "host":
		for _, h := range specList(u, "hosts") {
			values = append(values, strings.ToLower(h.(string)))
		}
	case "ordered":
		if class, ok := stringAt(u, "spec", "class"); ok && hasWeight {
			values = append(values, class+"\x00"+number(weight))
		}
	}
	if len(values) == 0 {
		return "", false
	}
	if descending {
		return slices.Max(values), true
	}
	return slices.Min(values), true
}

// TestClientGoMatchesModel verifies for a client-go cache that each plan returns the objects that match the
// predicate, in the right order.
func TestClientGoMatchesModel(t *testing.T) { checkAgainstModel(t, 1, 12, 50, newCacheQuerier) }
