package indexers

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/internal/config"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// element is the value in which the parts of an index are looked up: an object, or a value selected by
// "each". If collector.document is set, only values is used, otherwise only decoded.
type element struct {
	decoded any
	values  [][]jsonpath.Value // the values of each of Index.elementPaths
}

// collector collects the keys of one object for one index at a time.
type collector struct {
	*function
	object   map[string]any // decoded object; nil if document is set
	document []byte         // the object's JSON; nil if object is set
	// with document and "each": the values of the paths that begin at the object, not at the element
	rootValues    [][]jsonpath.Value
	keysFound     []string        // initial content, then the keys of the object
	initialLength int             // length of the initial content
	seen          map[string]bool // set of the object's keys; nil while the list is short
	keepRepeated  bool            // do not remove duplicate keys

	// Buffers for one element.
	scalars []scalar
	keys    []partKey // of one part
	tuple   []string
}

// begin resets the collector for an index.
func (c *collector) begin(f *function, found []string) {
	c.function, c.keysFound, c.initialLength, c.seen, c.rootValues = f, found, len(found), nil, nil
}

// objectKey returns namespace/name.
func (c *collector) objectKey() string {
	if c.document != nil {
		return objectKeyOfJSON(c.document)
	}
	return objectKey(c.object)
}

// collectDecoded collects the keys of a decoded object.
func (c *collector) collectDecoded() {
	c.function.calls.Add(1)
	if c.index.when != nil && !c.index.when.Match(c.object) {
		c.notSelected.Add(1)
		return
	}
	if c.index.elementPath == nil {
		c.addTuples(element{decoded: c.object})
	} else {
		elements := 0
		c.index.elementPath.Find(c.object, func(v any) bool {
			elements++
			c.addTuples(element{decoded: v})
			return true
		})
		if elements == 0 {
			c.missingValues.Add(1)
		}
	}
	c.countKeys()
}

func (c *collector) countKeys() {
	if n := len(c.keysFound) - c.initialLength; n > 0 {
		c.matched.Add(1)
		c.counters.values.Add(uint64(n))
	}
}

// addTuples adds the keys of one element. At most one part has several values, so that there is no cross
// product.
func (c *collector) addTuples(e element) {
	parts := c.index.parts
	if len(parts) == 1 {
		for _, k := range c.partKeys(e, 0) {
			c.addKey(k.key, k.valueLength)
		}
		return
	}
	size := 0 // of the single-valued parts
	c.tuple = append(c.tuple[:0], make([]string, len(parts))...)
	multiValued := c.index.multiValuedPart
	for i := range parts {
		if i == multiValued {
			continue
		}
		keys := c.partKeys(e, i)
		if len(keys) == 0 {
			return
		}
		c.tuple[i] = keys[0].key
		size += keys[0].valueLength
	}
	if multiValued < 0 {
		c.addKey(c.index.joinKey(c.tuple), size)
		return
	}
	for _, k := range c.partKeys(e, multiValued) {
		c.tuple[multiValued] = k.key
		c.addKey(c.index.joinKey(c.tuple), size+k.valueLength)
	}
}

// partKeys returns the keys of one part, including the replacement of missing values. The result is valid
// until the next call.
func (c *collector) partKeys(e element, n int) []partKey {
	p := &c.index.parts[n]
	c.keys = c.keys[:0]
	for _, from := range c.index.sources[n] {
		c.readSource(e, from)
		hasValue := false
		for _, s := range c.scalars {
			switch key, outcome := keyOf(p, s, c.index.Sorted); outcome {
			case keyComplete:
				c.keys = append(c.keys, key)
				hasValue = true
			case keyMistyped:
				c.mistyped.Add(1)
				hasValue = true
			case keyTooLong:
				c.overLimit.Add(1)
				hasValue = true
			case keyMissing: // null counts as missing
			}
		}
		if hasValue {
			return c.keys
		}
	}
	c.addMissing(p)
	return c.keys
}

func (c *collector) readSource(e element, from valueLocation) {
	c.scalars = c.scalars[:0]
	if c.document != nil {
		found := e.values
		if from.root {
			found = c.rootValues
		}
		for _, v := range found[from.resultIndex] {
			c.scalars = append(c.scalars, scalarOfJSON(v))
		}
		return
	}
	in := e.decoded
	if from.root {
		in = c.object
	}
	if from.path.Singular() { // avoids a closure
		if v, ok := from.path.First(in); ok {
			c.scalars = append(c.scalars, scalarOf(v))
		}
		return
	}
	from.path.Find(in, func(v any) bool {
		c.scalars = append(c.scalars, scalarOf(v))
		return true
	})
}

func (c *collector) addMissing(p *config.Part) {
	switch p.Missing.Kind {
	case config.MissingNull:
		c.keys = append(c.keys, partKey{key: Null})
		return
	case config.MissingValue:
		if key, ok := p.Encode(p.Missing.Value, c.index.Sorted); ok {
			c.keys = append(c.keys, partKey{key, len(p.Missing.Value)})
			return
		}
	case config.MissingReport:
		c.report(c.objectKey)
	}
	c.missingValues.Add(1)
}

// minMapKeys is the number of keys from which a map is faster than a list.
const minMapKeys = 16

// addKey adds a key unless it is a duplicate or exceeds a limit. size is the length of the value.
func (c *collector) addKey(key string, size int) {
	objectKeys := c.keysFound[c.initialLength:]
	switch {
	case size > c.index.maxValueBytes:
		c.overLimit.Add(1)
		return
	case c.keepRepeated:
		c.keysFound = append(c.keysFound, key)
		return
	case c.seen[key], c.seen == nil && slices.Contains(objectKeys, key):
		return
	case len(objectKeys) >= c.index.maxValues:
		c.overLimit.Add(1)
		return
	}
	c.keysFound = append(c.keysFound, key)
	if c.seen != nil {
		c.seen[key] = true
	} else if len(objectKeys)+1 >= minMapKeys {
		c.seen = make(map[string]bool, 2*minMapKeys)
		for _, k := range c.keysFound[c.initialLength:] {
			c.seen[k] = true
		}
	}
}

var (
	namespacePath = jsonpath.FromSegments("metadata", "namespace")
	namePath      = jsonpath.FromSegments("metadata", "name")
)

// objectKey returns the key in caches: namespace/name, or name.
func objectKey(object map[string]any) string {
	text := func(p *jsonpath.Path) string {
		v, _ := p.First(object)
		s, _ := v.(string)
		return s
	}
	return cache.NewObjectName(text(namespacePath), text(namePath)).String()
}
