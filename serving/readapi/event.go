package readapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

func (e *encoder) appendEvent(dst []byte, kind watch.EventType, o Object) ([]byte, error) {
	dst = append(dst, `{"type":"`...)
	dst = append(append(dst, kind...), `","object":`...)
	dst, err := e.appendObject(dst, o)
	return append(dst, "}\n"...), err
}

// maxCachedEvents is the number of encoded events that are cached for all watches. Watches that lag behind
// encode again.
const maxCachedEvents = 128

// eventCache encodes each event once for all watches of a type.
type eventCache struct {
	sync.Mutex
	lines          map[eventKey]*eventLine
	insertionOrder [maxCachedEvents]eventKey // a ring buffer
	nextSlot       int
}

type eventKey struct {
	object      Object
	kind        watch.EventType
	version     uint64   // resource version
	typeVersion *Version // differs after a change of the type's schema
	form        answerForm
}

type eventLine struct {
	once sync.Once
	text []byte
	err  error
}

func (c *eventCache) line(e *encoder, kind watch.EventType, o Object, version uint64) ([]byte, error) {
	encode := func() ([]byte, error) {
		if kind != watch.Deleted {
			return e.appendEvent(nil, kind, o)
		}
		deletedState, err := withVersion(o, version)
		if err != nil {
			return nil, err
		}
		return e.appendEvent(nil, kind, deletedState)
	}
	if e.form.kind == tableForm {
		return encode() // only the first table of a watch has headers
	}
	line := c.entry(eventKey{o, kind, version, e.resource.version, e.form})
	line.once.Do(func() { line.text, line.err = encode() })
	return line.text, line.err
}

// entry returns the line of a key. A new line replaces the oldest one.
func (c *eventCache) entry(key eventKey) *eventLine {
	c.Lock()
	defer c.Unlock()
	if line := c.lines[key]; line != nil {
		return line
	}
	if c.lines == nil {
		c.lines = map[eventKey]*eventLine{}
	}
	delete(c.lines, c.insertionOrder[c.nextSlot])
	c.insertionOrder[c.nextSlot] = key
	c.nextSlot = (c.nextSlot + 1) % maxCachedEvents
	line := &eventLine{}
	c.lines[key] = line
	return line
}
