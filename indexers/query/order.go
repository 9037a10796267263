package query

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// compareKeys orders by namespace and then by name. Cluster-scoped objects come first.
func compareKeys(a, b string) int {
	nsA, nameA := naming.SplitKey(a)
	nsB, nameB := naming.SplitKey(b)
	return cmp.Or(strings.Compare(nsA, nsB), strings.Compare(nameA, nameB))
}

// order is a list of sort terms. Namespace and name are implied at its end.
type order []sortTerm

type sortTerm struct {
	name       string
	descending bool
	index      *openedIndex // nil for a built-in name or a path
	valueOf    func(key string, item any) sortValue
	readsBody  bool // valueOf reads the object's body
}

// sortValue is the sort key of an object. Objects without one come last.
type sortValue struct {
	key     string
	present bool
}

// position is the place of an object in an order.
type position struct {
	values []sortValue
	key    string
}

func (o order) compare(a, b position) int {
	for i, t := range o {
		if c := t.compare(a.values[i], b.values[i]); c != 0 {
			return c
		}
	}
	return compareKeys(a.key, b.key)
}

func (t sortTerm) compare(a, b sortValue) int {
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

// String returns the terms as users write them, including the implied ones.
func (o order) String() string {
	texts := make([]string, 0, len(o)+2)
	for _, t := range o {
		if t.descending {
			texts = append(texts, t.name+" descending")
		} else {
			texts = append(texts, t.name)
		}
	}
	for _, tieBreaker := range []string{"namespace", "name"} {
		if !slices.ContainsFunc(o, func(t sortTerm) bool { return t.index == nil && t.name == tieBreaker }) {
			texts = append(texts, tieBreaker)
		}
	}
	return strings.Join(texts, ", ")
}

func (c *compiler) compileOrder(options Options) (order, error) {
	if strings.TrimSpace(options.SortBy) == "" {
		if options.Descending {
			return nil, errors.New("a descending order needs a sort term; set Options.SortBy")
		}
		return nil, nil
	}
	var o order
	for _, text := range jsonpath.SplitList(options.SortBy) {
		t, err := c.compileTerm(text, options.Descending)
		if err != nil {
			return nil, err
		}
		o = append(o, t)
	}
	return o, nil
}

// compileTerm parses a sort term: an expression and an optional direction. The expression is a path, the name
// of a sorted index, or one of name, namespace and age. isReversed inverts the direction.
func (c *compiler) compileTerm(text string, isReversed bool) (sortTerm, error) {
	name, direction := splitDirection(text)
	if direction != "" && sortDirections[direction] == 0 {
		return sortTerm{}, &SortError{Text: text}
	}
	t := sortTerm{name: name, descending: (sortDirections[direction] < 0) != isReversed}
	if isPath(name) {
		return t, t.compilePath(c)
	}
	index, err := c.schema.open(c.snapshot, name)
	switch {
	case err == nil && index.isSorted():
		t.index = &index
		t.valueOf = t.indexValueFunc()
		return t, nil
	case name == "age":
		t.valueOf = func(_ string, item any) sortValue { return ageValue(c.meter, item) }
		return t, checkStored(c.snapshot, creationTimestamp)
	case name == "name", name == "namespace":
		t.valueOf = func(key string, _ any) sortValue {
			namespace, objectName := naming.SplitKey(key)
			if name == "namespace" {
				return sortValue{namespace, true}
			}
			return sortValue{objectName, true}
		}
		return t, nil
	case err != nil:
		return t, err
	}
	return t, &UnsortedError{name, "sorting"}
}

// indexValueFunc returns a function that returns the first key of an object in the order of the term.
func (t sortTerm) indexValueFunc() func(object string, item any) sortValue {
	var keys []string // reused for each object
	return func(object string, item any) (first sortValue) {
		keys = t.index.keysOf(keys[:0], object, item)
		for _, key := range keys {
			if key == indexers.Null && !t.index.isComposite() {
				continue
			}
			if v := (sortValue{key, true}); !first.present || t.compare(v, first) < 0 {
				first = v
			}
		}
		return first
	}
}

// IsBuiltinOrder reports whether objects of every type can be sorted by a name: name, namespace or age.
// Configs cannot declare an index of such a name.
func IsBuiltinOrder(name string) bool { return name == "name" || name == "namespace" || name == "age" }

var creationTimestamp = jsonpath.FromSegments("metadata", "creationTimestamp")

// ageValue sorts the youngest object first.
func ageValue(m *workMeter, item any) sortValue {
	for _, text := range textsOf(m, item, creationTimestamp) {
		if created, err := time.Parse(time.RFC3339, text); err == nil {
			key, ok := sortkey.Int.Key(strconv.FormatInt(-created.Unix(), 10))
			return sortValue{key, ok}
		}
	}
	return sortValue{}
}

// isPath reports whether a name is a path rather than the name of an index.
func isPath(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "$") }

// splitDirection splits a term into a name or path and its direction. A path can contain spaces, so that only
// its last word can be a direction.
func splitDirection(text string) (name, direction string) {
	if !isPath(text) {
		name, direction, _ = strings.Cut(text, " ")
		return name, strings.TrimSpace(direction)
	}
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		if last := text[i+1:]; sortDirections[last] != 0 {
			return strings.TrimSpace(text[:i]), last
		}
	}
	return text, ""
}

// sortDirections maps the words for a direction to 1 (ascending) or -1.
var sortDirections = map[string]int{"asc": 1, "ascending": 1, "desc": -1, "descending": -1}

// compilePath sorts a term by the first value at its path, in the natural order.
func (t *sortTerm) compilePath(c *compiler) error {
	path, err := jsonpath.Compile(t.name)
	if err != nil {
		return &SortError{Text: t.name, Err: err}
	}
	if err := checkStored(c.snapshot, path); err != nil {
		return err
	}
	t.readsBody = true
	t.valueOf = func(_ string, item any) (first sortValue) {
		for _, text := range textsOf(c.meter, item, path) {
			if v := (sortValue{naturalOrderKey(text), true}); !first.present || t.compare(v, first) < 0 {
				first = v
			}
		}
		return first
	}
	return nil
}
