package indexers

import (
	"slices"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// element is where the parts of an index are looked up: an object, or what "each" leads to.
type element interface {
	// values calls yield for each value that part number n of the index leads to.
	values(n int, yield func(scalar))
}

// decodedElement is one that was decoded.
type decodedElement struct {
	parts []part
	of    any
}

func (e decodedElement) values(n int, yield func(scalar)) {
	p := e.parts[n].path
	if p.Singular() { // saves the closure
		if v, ok := p.First(e.of); ok {
			yield(scalarOf(v))
		}
		return
	}
	p.Find(e.of, func(v any) bool {
		yield(scalarOf(v))
		return true
	})
}

// collecting gathers the keys of one object for one index.
type collecting struct {
	*function
	objectKey func() string
	found     []string        // what was there before, and then the keys of the object
	before    int             // where the latter begin
	seen      map[string]bool // of the latter, once a search through the list takes too long
}

// decoded gathers the keys of a decoded object.
func (c *collecting) decoded(object map[string]any) {
	c.function.seen.Add(1)
	if c.index.when != nil && !c.index.when.Match(object) {
		c.when.Add(1)
		return
	}
	if c.index.each == nil {
		c.tuples(decodedElement{c.index.parts, object})
	} else {
		elements := 0
		c.index.each.Find(object, func(v any) bool {
			elements++
			c.tuples(decodedElement{c.index.parts, v})
			return true
		})
		if elements == 0 {
			c.missing.Add(1)
		}
	}
	c.count()
}

// count notes what was found.
func (c *collecting) count() {
	if n := len(c.found) - c.before; n > 0 {
		c.matched.Add(1)
		c.counters.values.Add(uint64(n))
	}
}

// tuples adds the keys of one element. At most one part has several values, so there is no cross
// product.
func (c *collecting) tuples(e element) {
	parts := c.index.parts
	if len(parts) == 1 {
		c.partValues(e, 0, c.add)
		return
	}
	tuple := make([]string, len(parts))
	many := -1
	for i := range parts {
		if !parts[i].path.Singular() {
			many = i
			continue
		}
		complete := false
		c.partValues(e, i, func(s string) { tuple[i], complete = s, true })
		if !complete {
			return
		}
	}
	if many < 0 {
		c.add(c.index.join(tuple))
		return
	}
	c.partValues(e, many, func(s string) {
		tuple[many] = s
		c.add(c.index.join(tuple))
	})
}

// partValues gives the values of one part, with whatever stands for missing ones.
func (c *collecting) partValues(e element, n int, yield func(string)) {
	values := 0
	p := &c.index.parts[n]
	e.values(n, func(s scalar) {
		values++
		switch key, outcome := p.key(s, c.index.Sorted); outcome {
		case keyed:
			yield(key)
		case absent:
			c.absent(p, yield)
		case unfit:
			c.kind.Add(1)
		}
	})
	if values == 0 {
		c.absent(p, yield)
	}
}

// absent deals with a missing value.
func (c *collecting) absent(p *part, yield func(string)) {
	switch p.missing.kind {
	case missingNull:
		yield(Null)
		return
	case missingValue:
		if key, ok := p.encode(p.missing.value, c.index.Sorted); ok {
			yield(key)
			return
		}
	case missingReport:
		c.report(c.objectKey)
	}
	c.missing.Add(1)
}

// manyValues is the number from which a map is faster than a list.
const manyValues = 16

// add keeps a key unless it is there already or beyond a limit.
func (c *collecting) add(key string) {
	own := c.found[c.before:]
	switch {
	case len(key) > c.index.maxValueBytes:
		c.limit.Add(1)
		return
	case c.seen[key], c.seen == nil && slices.Contains(own, key):
		return
	case len(own) >= c.index.maxValues:
		c.limit.Add(1)
		return
	}
	c.found = append(c.found, key)
	if c.seen != nil {
		c.seen[key] = true
	} else if len(own)+1 >= manyValues {
		c.seen = make(map[string]bool, 2*manyValues)
		for _, k := range c.found[c.before:] {
			c.seen[k] = true
		}
	}
}

var (
	namespacePath = jsonpath.FromSegments("metadata", "namespace")
	namePath      = jsonpath.FromSegments("metadata", "name")
)

// objectKey is the key that informers use: namespace/name, or name.
func objectKey(object map[string]any) string {
	text := func(p *jsonpath.Path) string {
		v, _ := p.First(object)
		s, _ := v.(string)
		return s
	}
	return joinKey(text(namespacePath), text(namePath))
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
