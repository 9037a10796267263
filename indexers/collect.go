package indexers

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// element is an object, or a value in it that "each" selects. The parts of an index are read from it. If
// collector.document is set, only values is used, otherwise only decoded.
type element struct {
	decoded any
	values  [][]jsonpath.Value // the values of each of Index.elementPaths
	key     string             // in its map, for readElementKey
}

// collector collects the keys of one object for one index at a time.
type collector struct {
	*indexFunction
	document []byte // the object's JSON; nil for a decoded object
	// object is the decoded document; nil until an expression reads it.
	object map[string]any
	// root is the object. If document is set, it has only the values of Index.rootPaths.
	root          element
	keysFound     []string        // initial content, then the keys of the object
	initialLength int             // length of the initial content
	seen          map[string]bool // set of the object's keys; nil while the list is short
	keepRepeated  bool            // do not remove duplicate keys

	// Buffers for one element.
	scalars []scalar
	keys    []partKey // of one part
	tuple   []string
}

func (c *collector) reset(f *indexFunction, keys []string) {
	c.indexFunction, c.keysFound, c.initialLength, c.seen = f, keys, len(keys), nil
}

// objectKey returns the key in caches: namespace/name, or name.
func (c *collector) objectKey() string {
	text := func(p *jsonpath.Path) string {
		if c.document != nil {
			v, _, _ := p.FirstJSON(c.document)
			b, _ := v.Text()
			return string(b)
		}
		v, _ := p.First(c.root.decoded)
		s, _ := v.(string)
		return s
	}
	return cache.NewObjectName(text(namespacePath), text(namePath)).String()
}

func (c *collector) collectDecoded() {
	c.indexFunction.calls.Add(1)
	if c.index.when != nil && !c.index.when.Match(c.root.decoded) {
		c.notSelected.Add(1)
		return
	}
	if c.index.whenCEL != nil && !c.conditionHolds(c.index.whenCEL) {
		return
	}
	if c.index.each == nil {
		c.addTuples(c.root)
	} else {
		elements := 0
		c.index.eachPath().Find(c.root.decoded, func(v any) bool {
			c.index.elementsOf(v, func(key string, decoded any) {
				elements++
				c.addTuples(element{decoded: decoded, key: key})
			})
			return true
		})
		if elements == 0 {
			c.missingValues.Add(1)
		}
	}
	c.countKeys()
}

func (c *collector) countKeys() {
	if c.index.combine != "" {
		combined := c.index.combineValues(c.keysFound[c.initialLength:])
		c.keysFound = c.keysFound[:c.initialLength+len(combined)]
	}
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
	fixedLength := 0 // length of the single-valued parts
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
		fixedLength += keys[0].valueLength
	}
	if multiValued < 0 {
		c.addKey(c.index.joinKey(c.tuple), fixedLength)
		return
	}
	for _, k := range c.partKeys(e, multiValued) {
		c.tuple[multiValued] = k.key
		c.addKey(c.index.joinKey(c.tuple), fixedLength+k.valueLength)
	}
}

// partKeys returns the keys of one part, including the replacement of missing values. The result is valid
// until the next call.
func (c *collector) partKeys(e element, n int) []partKey {
	p := &c.index.parts[n]
	c.keys = c.keys[:0]
	if !c.addValues(e, p) {
		c.addMissing(p)
	}
	if p.label && len(c.keys) == 0 {
		c.keys = append(c.keys, partKey{key: Null})
	}
	return c.keys
}

// addValues adds the keys of the values of a part. It returns false if the values are missing.
func (c *collector) addValues(e element, p *indexPart) bool {
	if p.cel != nil && (!c.readCEL(p) || c.addScalars(p)) {
		return true
	}
	for i := range p.sources {
		c.readSource(e, &p.sources[i])
		if c.addScalars(p) {
			return true
		}
	}
	return false
}

// addScalars adds the keys of c.scalars, and reports whether there was a value.
func (c *collector) addScalars(p *indexPart) (hasValue bool) {
	for _, s := range c.scalars {
		key, outcome := keyOf(p, s, c.index.Sorted)
		switch outcome {
		case keyComplete:
			c.keys = append(c.keys, key)
		case keyMistyped:
			c.mistyped.Add(1)
		case keyTooLong:
			c.overLimit.Add(1)
		}
		hasValue = hasValue || outcome != keyMissing // null counts as missing
	}
	return hasValue
}

// readSource reads the values of a path in an element, or in the object if the path begins there.
func (c *collector) readSource(e element, source *valuePath) {
	c.scalars = c.scalars[:0]
	if source.kind == readElementKey {
		c.scalars = append(c.scalars, scalar{jsonpath.KindString, e.key})
		return
	}
	if source.root {
		e = c.root
	}
	if c.document != nil {
		for _, v := range e.values[source.number] {
			if source.kind == readScalar {
				c.scalars = append(c.scalars, scalarOfJSON(v))
			} else {
				c.scalars = append(c.scalars, source.kind.read(v.Any()))
			}
		}
		if source.first {
			c.scalars = c.scalars[:min(len(c.scalars), 1)]
		}
		return
	}
	if source.path.Singular() { // avoids a closure
		if v, ok := source.path.First(e.decoded); ok {
			c.scalars = append(c.scalars, source.kind.read(v))
		}
		return
	}
	source.path.Find(e.decoded, func(v any) bool {
		c.scalars = append(c.scalars, source.kind.read(v))
		return !source.first
	})
}

func (c *collector) addMissing(p *indexPart) {
	switch p.missing.kind {
	case missingNull:
		c.keys = append(c.keys, partKey{key: Null})
		return
	case missingValue:
		if key, ok := p.encode(p.missing.value, c.index.Sorted); ok {
			c.keys = append(c.keys, partKey{key, len(p.missing.value)})
			return
		}
	case missingReport:
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
	case c.keepRepeated, c.index.combine != "":
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

// extraction reads the values for all indexes of a resource in one pass over a document.
type extraction struct {
	set *jsonpath.Set
	// firstExpressions holds, for each index, the number of its first expression in the set. The expressions
	// of an index are "when", if set, and then its paths, or "each" and the root paths.
	firstExpressions []int
}

func newExtraction(functions []*indexFunction) extraction {
	var x extraction
	var exprs []jsonpath.Expr
	for _, f := range functions {
		x.firstExpressions = append(x.firstExpressions, len(exprs))
		if f.index.when != nil {
			exprs = append(exprs, f.index.when)
		}
		if f.index.each != nil {
			exprs = append(append(exprs, f.index.eachPath()), f.index.rootPaths...)
			continue
		}
		exprs = append(exprs, f.index.elementPaths...)
	}
	x.set = jsonpath.NewSet(exprs...)
	return x
}

// extractionState are the values of each expression of a set, with a collector for their keys.
type extractionState struct {
	collector
	values [][]jsonpath.Value
	// elementValues are the values of Index.elementPaths within one element of "each".
	elementValues [][]jsonpath.Value
}

var extractionPool = sync.Pool{New: func() any { return new(extractionState) }}

// resetLists empties lists and extends them to n.
func resetLists(lists [][]jsonpath.Value, n int) [][]jsonpath.Value {
	for len(lists) < n {
		lists = append(lists, nil)
	}
	for i := range lists {
		clear(lists[i]) // pooled lists must not pin documents
		lists[i] = lists[i][:0]
	}
	return lists
}

func (e *extractionState) release() {
	e.values, e.elementValues = resetLists(e.values, 0), resetLists(e.elementValues, 0)
	clear(e.scalars[:cap(e.scalars)])
	clear(e.collector.keys[:cap(e.collector.keys)])
	clear(e.tuple[:cap(e.tuple)])
	e.collector = collector{scalars: e.scalars, keys: e.collector.keys, tuple: e.tuple}
	extractionPool.Put(e)
}

func (e *extractionState) addResult(i int, v jsonpath.Value) bool {
	e.values[i] = append(e.values[i], v)
	return true
}

func (e *extractionState) addElementResult(i int, v jsonpath.Value) bool {
	e.elementValues[i] = append(e.elementValues[i], v)
	return true
}

// collect collects the keys of one index. expression is the number of its first expression.
func (e *extractionState) collect(expression int) {
	e.indexFunction.calls.Add(1)
	if e.index.when != nil {
		if len(e.values[expression]) == 0 {
			e.notSelected.Add(1)
			return
		}
		expression++
	}
	if e.index.whenCEL != nil && !e.conditionHolds(e.index.whenCEL) {
		return
	}
	if e.index.each == nil {
		e.addTuples(element{values: e.values[expression : expression+len(e.index.elementPaths)]})
	} else {
		e.root.values = e.values[expression+1 : expression+1+len(e.index.rootPaths)]
		e.collectElements(e.values[expression])
	}
	e.countKeys()
}

func (e *extractionState) collectElements(matches []jsonpath.Value) {
	elements := 0
	for _, v := range matches {
		e.index.rawElements(v, func(key string, raw []byte) {
			elements++
			e.elementValues = resetLists(e.elementValues, len(e.index.elementPaths))
			// cannot fail: the element is part of a valid document
			_ = e.index.elements.FindJSON(raw, e.addElementResult)
			e.addTuples(element{values: e.elementValues, key: key})
		})
	}
	if elements == 0 {
		e.missingValues.Add(1)
	}
}

// storedObject is an object stored as JSON, such as a dynamicinformer.PackedObject.
type storedObject interface {
	ReadJSON(read func(json []byte) error) error
	Decoded() *unstructured.Unstructured
	Unstructured() *unstructured.Unstructured
}

// KeysOfStored returns the keys of an object as a cache stores it: [Functions.KeysJSON] for JSON, which is
// not decoded, otherwise [Functions.Keys].
func (f *Functions) KeysOfStored(object any) [][]string { return f.storedKeysAndValues(object, false) }

// ValuesOfStored works like KeysOfStored with repeated keys for repeated values. maxValues does not apply.
func (f *Functions) ValuesOfStored(object any) [][]string { return f.storedKeysAndValues(object, true) }

func (f *Functions) storedKeysAndValues(object any, keepRepeated bool) [][]string {
	o, ok := object.(storedObject)
	if !ok {
		return f.decodedKeys(object, keepRepeated)
	}
	if u := o.Decoded(); u != nil {
		return f.decodedKeys(u, keepRepeated)
	}
	var keys [][]string
	err := o.ReadJSON(func(json []byte) error {
		keys = f.keysJSON(json, nil, keepRepeated)
		return nil
	})
	if err != nil { // invalid JSON: use the readable part
		return f.decodedKeys(o.Unstructured(), keepRepeated)
	}
	return keys
}
