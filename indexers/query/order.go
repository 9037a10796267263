package query

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// compareKeys orders by namespace, and then by name. What has no namespace comes first.
func compareKeys(a, b string) int {
	nsA, nameA := splitKey(a)
	nsB, nameB := splitKey(b)
	if c := strings.Compare(nsA, nsB); c != 0 {
		return c
	}
	return strings.Compare(nameA, nameB)
}

func splitKey(key string) (namespace, name string) {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		return "", key
	}
	return namespace, name
}

// order is what objects are sorted by, the most important first; namespace and name come last in any case.
type order []term

// term is one thing to sort by.
type term struct {
	name       string
	descending bool
	index      *access // nil for what all objects have
	of         func(key string, item any) sortValue
	body       bool // of looks into objects
}

// sortValue is what an object is sorted by: those that have none come last.
type sortValue struct {
	key     string
	present bool
}

// place is where an object is in an order.
type place struct {
	values []sortValue
	key    string
}

// compare orders places.
func (o order) compare(a, b place) int {
	for i, t := range o {
		if c := t.compare(a.values[i], b.values[i]); c != 0 {
			return c
		}
	}
	return compareKeys(a.key, b.key)
}

func (t term) compare(a, b sortValue) int {
	switch {
	case a.present != b.present && a.present:
		return -1
	case a.present != b.present:
		return 1
	case t.descending:
		return strings.Compare(b.key, a.key)
	}
	return strings.Compare(a.key, b.key)
}

// String gives the order as people write it, with what decides in the end.
func (o order) String() string {
	texts := make([]string, 0, len(o)+2)
	for _, t := range o {
		if t.descending {
			texts = append(texts, t.name+" descending")
		} else {
			texts = append(texts, t.name)
		}
	}
	for _, last := range []string{"namespace", "name"} {
		if !slices.ContainsFunc(o, func(t term) bool { return t.index == nil && t.name == last }) {
			texts = append(texts, last)
		}
	}
	return strings.Join(texts, ", ")
}

// compileOrder reads what the options say about the order.
func (c *compiler) compileOrder(options Options) (order, error) {
	if strings.TrimSpace(options.SortBy) == "" {
		if options.Descending {
			return nil, errors.New("a descending order needs something to sort by")
		}
		return nil, nil
	}
	var o order
	for _, text := range splitTerms(options.SortBy) {
		t, err := c.compileTerm(strings.TrimSpace(text), options.Descending)
		if err != nil {
			return nil, err
		}
		o = append(o, t)
	}
	return o, nil
}

// compileTerm reads the name of a sorted index, a path, or name, namespace or age, and a direction, which may
// be turned around.
func (c *compiler) compileTerm(text string, around bool) (term, error) {
	name, direction := splitDirection(text)
	if direction != "" && directions[direction] == 0 {
		return term{}, &SortError{Text: text}
	}
	t := term{name: name, descending: (directions[direction] < 0) != around}
	if isPath(name) {
		return t, t.ofPath(c.meter)
	}
	index, err := c.schema.open(c.snapshot, name)
	switch {
	case err == nil && index.sorted():
		t.index = &index
		t.of = t.ofIndex()
		return t, nil
	case builtin[name] != nil:
		t.of = builtin[name]
		return t, nil
	case err != nil:
		return t, err
	}
	return t, &UnsortedError{name, "sorting"}
}

// ofIndex gives the first key of each object, in the order of the term.
func (t term) ofIndex() func(object string, item any) sortValue {
	var keys []string // of one object after the other
	return func(object string, item any) (first sortValue) {
		keys = t.index.keysOf(keys[:0], object, item)
		for _, key := range keys {
			if key == indexers.Null && !t.index.composite() {
				continue
			}
			if v := (sortValue{key, true}); !first.present || t.compare(v, first) < 0 {
				first = v
			}
		}
		return first
	}
}

// builtin are what all objects can be sorted by.
var builtin = map[string]func(key string, item any) sortValue{
	"name": func(key string, _ any) sortValue {
		_, name := splitKey(key)
		return sortValue{name, true}
	},
	"namespace": func(key string, _ any) sortValue {
		namespace, _ := splitKey(key)
		return sortValue{namespace, true}
	},
	"age": ageOf,
}

// IsBuiltinOrder reports whether objects of all types can be sorted by a name. No index of a config has such
// a name.
func IsBuiltinOrder(name string) bool { return builtin[name] != nil }

// creation leads to the time of creation.
var creation = jsonpath.FromSegments("metadata", "creationTimestamp")

// ageOf puts the youngest first.
func ageOf(_ string, item any) sortValue {
	for _, text := range textsOf(nil, item, creation) {
		if created, err := time.Parse(time.RFC3339, text); err == nil {
			key, ok := sortkey.Int.Key(strconv.FormatInt(-created.Unix(), 10))
			return sortValue{key, ok}
		}
	}
	return sortValue{}
}
