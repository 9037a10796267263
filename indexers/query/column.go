package query

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// cell is a value of an object.
type cell struct {
	// order is what it is sorted by, text how it is shown.
	order, text string
	// none stands for an object without a value.
	none bool
}

func (c cell) value() string {
	if c.none {
		return indexers.Null
	}
	return c.text
}

func (c cell) compare(other cell) int {
	if c.none != other.none {
		if c.none {
			return 1
		}
		return -1
	}
	return strings.Compare(c.order, other.order)
}

// column gives what objects have in an index or at a path.
type column struct {
	name string
	// typ is that of an index; empty for paths and indexes without a type.
	typ sortkey.Type
	of  func(key string, item any) []cell
}

// column opens an index or compiles a path.
func (x *execution) column(name string) (column, error) {
	if isPath(name) {
		path, err := jsonpath.Compile(name)
		if err != nil {
			return column{}, err
		}
		return column{name: name, of: func(_ string, item any) (cells []cell) {
			x.work(bodyWork)
			for _, text := range textsOf(x.meter, item, path) {
				cells = append(cells, cell{order: naturalKey(text), text: text})
			}
			return cells
		}}, nil
	}
	a, err := x.schema.open(x.snapshot, name)
	if err != nil {
		return column{}, err
	}
	c := column{name: name}
	if a.declared != nil && !a.composite() {
		c.typ, _ = sortkey.Named(a.declared.Types()[0])
	}
	keys := x.keys(a)
	c.of = func(object string, item any) (cells []cell) {
		for _, key := range keys(object, item) {
			if key == indexers.Null && !a.composite() {
				continue
			}
			one := cell{order: key, text: a.show(key)}
			if !a.sorted() {
				one.order = c.orderOf(one.text)
			}
			cells = append(cells, one)
		}
		return cells
	}
	return c, nil
}

// orderOf gives what a value is sorted by: as its type has it, or where it has none, as it seems natural.
func (c column) orderOf(text string) string {
	switch c.typ {
	case sortkey.Any:
		return naturalKey(text)
	case sortkey.String:
		return text
	}
	key, _ := c.typ.Key(text)
	return key
}

// naturalKey puts numbers and quantities before times, and these before other text.
func naturalKey(text string) string {
	for i, typ := range []sortkey.Type{sortkey.Number, sortkey.Quantity, sortkey.Time} {
		if key, ok := typ.Key(text); ok {
			return string(rune('1'+i/2)) + key
		}
	}
	return "3" + text
}

// keys gives the keys of objects in an index: where few are looked at, those of each; else by going through the index
// once.
func (x *execution) keys(a access) func(object string, item any) []string {
	if factor := a.rereading(); a.functions != nil && x.candidateCount()*factor <= x.snapshot.Len() {
		return func(object string, item any) []string {
			x.work(factor)
			return a.keysOf(nil, object, item)
		}
	}
	all := map[string][]string{}
	a.each(func(key string, _ int) bool {
		a.Objects(key, func(object string, _ any) bool {
			all[object] = append(all[object], key)
			return x.work(1)
		})
		return x.work(1)
	})
	return func(object string, _ any) []string { return all[object] }
}

// measuring is a measure that is being computed.
type measuring struct {
	column
	function string
}

// measured opens what a measure is of.
func (x *execution) measured(m Measure) (measuring, error) {
	if _, err := ParseMeasure(m.String()); err != nil {
		return measuring{}, err
	}
	c, err := x.column(m.Of)
	if err != nil {
		return measuring{}, err
	}
	if m.Function == "sum" || m.Function == "avg" {
		switch c.typ {
		case sortkey.Any, sortkey.Int, sortkey.Number, sortkey.Quantity, sortkey.Duration:
		default:
			return measuring{}, fmt.Errorf("index %q: there is no %s of values of type %s; use min or max", m.Of, m.Function, c.typ)
		}
	}
	return measuring{c, m.Function}, nil
}
