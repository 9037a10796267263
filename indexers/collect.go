package indexers

import (
	"slices"

	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// collecting gathers the values of one object for one index.
type collecting struct {
	*function
	object map[string]any
	found  []string
	seen   map[string]bool // of found, once a search through the list takes too long
}

func (c *collecting) collect() {
	if c.index.each == nil {
		c.tuples(c.object)
		return
	}
	elements := 0
	c.index.each.Find(c.object, func(element any) bool {
		elements++
		c.tuples(element)
		return true
	})
	if elements == 0 {
		c.missing.Add(1)
	}
}

// tuples adds the values of the object, or of one element. At most one part has several values, so
// there is no cross product.
func (c *collecting) tuples(of any) {
	parts := c.index.parts
	if len(parts) == 1 {
		c.partValues(&parts[0], of, c.add)
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
		c.partValues(&parts[i], of, func(s string) { tuple[i], complete = s, true })
		if !complete {
			return
		}
	}
	if many < 0 {
		c.add(Value(tuple...))
		return
	}
	c.partValues(&parts[many], of, func(s string) {
		tuple[many] = s
		c.add(Value(tuple...))
	})
}

// partValues gives the values of one part, with whatever stands for missing ones.
func (c *collecting) partValues(p *part, of any, yield func(string)) {
	values := 0
	p.path.Find(of, func(v any) bool {
		values++
		c.partValue(p, v, yield)
		return true
	})
	if values == 0 {
		c.absent(p, yield)
	}
}

func (c *collecting) partValue(p *part, v any, yield func(string)) {
	if v == nil {
		c.absent(p, yield)
		return
	}
	text, ok := scalarText(v)
	if !ok {
		c.kind.Add(1)
		return
	}
	if text, ok = p.apply(text); !ok {
		c.absent(p, yield)
		return
	}
	if text == Null { // what a transform left
		c.kind.Add(1)
		return
	}
	yield(text)
}

// absent deals with a missing value.
func (c *collecting) absent(p *part, yield func(string)) {
	switch p.missing.kind {
	case missingNull:
		yield(Null)
		return
	case missingValue:
		yield(p.missing.value)
		return
	case missingReport:
		c.report(objectKey(c.object))
	}
	c.missing.Add(1)
}

// manyValues is the number from which a map is faster than a list.
const manyValues = 16

// add keeps a value unless it is there already or beyond a limit.
func (c *collecting) add(value string) {
	switch {
	case len(value) > c.index.maxValueBytes:
		c.limit.Add(1)
		return
	case c.seen[value], c.seen == nil && slices.Contains(c.found, value):
		return
	case len(c.found) >= c.index.maxValues:
		c.limit.Add(1)
		return
	}
	c.found = append(c.found, value)
	if c.seen != nil {
		c.seen[value] = true
	} else if len(c.found) >= manyValues {
		c.seen = make(map[string]bool, 2*manyValues)
		for _, v := range c.found {
			c.seen[v] = true
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
	if ns := text(namespacePath); ns != "" {
		return ns + "/" + text(namePath)
	}
	return text(namePath)
}
