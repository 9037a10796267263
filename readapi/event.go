package readapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// appendEvent appends an event of a watch.
func (e *encoder) appendEvent(dst []byte, kind watch.EventType, o Object) ([]byte, error) {
	dst = append(dst, `{"type":"`...)
	dst = append(append(dst, kind...), `","object":`...)
	dst, err := e.appendObject(dst, o)
	return append(dst, "}\n"...), err
}

// cachedEvents is how many encoded events are kept: what watches that keep up are about to tell. Those that
// are behind encode again.
const cachedEvents = 128

// eventCache has what is the same for all watches of a type encoded once.
type eventCache struct {
	sync.Mutex
	lines map[eventKey]*eventLine
	order [cachedEvents]eventKey // a ring
	next  int
}

// eventKey is what the text of an event depends on.
type eventKey struct {
	object  Object
	kind    watch.EventType
	version uint64   // the resource version
	as      *Version // with the schema that it then had
	shape   shape
}

type eventLine struct {
	once sync.Once
	text []byte
	err  error
}

// line returns the text of the event that an object changed with a resource version.
func (c *eventCache) line(e *encoder, kind watch.EventType, o Object, version uint64) ([]byte, error) {
	encode := func() ([]byte, error) {
		if kind != watch.Deleted {
			return e.appendEvent(nil, kind, o)
		}
		last, err := withVersion(o, version)
		if err != nil {
			return nil, err
		}
		return e.appendEvent(nil, kind, last)
	}
	if e.shape.kind == table {
		return encode() // the first one of a watch has headers, and rows depend on the query
	}
	line := c.entry(eventKey{o, kind, version, e.t.version, e.shape})
	line.once.Do(func() { line.text, line.err = encode() })
	return line.text, line.err
}

// entry returns the line of a key, in the place of the oldest one if it is new.
func (c *eventCache) entry(key eventKey) *eventLine {
	c.Lock()
	defer c.Unlock()
	if line := c.lines[key]; line != nil {
		return line
	}
	if c.lines == nil {
		c.lines = map[eventKey]*eventLine{}
	}
	delete(c.lines, c.order[c.next])
	c.order[c.next] = key
	c.next = (c.next + 1) % cachedEvents
	line := &eventLine{}
	c.lines[key] = line
	return line
}
