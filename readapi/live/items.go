package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// itemReader reads the items of a list, or the rows of a table, one by one as they come.
type itemReader struct {
	source io.Reader
	data   []byte // what has been read and not been used up yet is from pos on
	pos    int
	// members are those of the list beside the items, of which the first leading ones came before them.
	members []member
	leading int
	name    string // of the items
	// item is the present one, and key its "namespace/name"; nil after the last. It is good until the next one is read.
	item []byte
	key  string
}

// member is one of a JSON object.
type member struct {
	name  string
	value []byte
}

const (
	// itemBuffer is how much of a list is in memory at first.
	itemBuffer = 64 << 10
	// maxItem is the size of the largest item that is read; API servers have none that large.
	maxItem = 128 << 20
)

var errNoList = errors.New("the answer is not a list")

// newItemReader reads as far as the first item.
func newItemReader(source io.Reader) (*itemReader, error) {
	l := &itemReader{source: source, data: make([]byte, 0, itemBuffer)}
	if err := l.expect('{'); err != nil {
		return nil, err
	}
	for l.name == "" {
		if err := l.member(); err != nil {
			return nil, err
		}
	}
	l.leading = len(l.members)
	if c, err := l.peek(); err != nil || c != ']' {
		return l, errors.Join(err, l.read())
	}
	return l, l.finish()
}

// member reads one member of the list with the comma that follows it; of the items, whose name it keeps, the bracket alone.
func (l *itemReader) member() error {
	quoted, err := l.value()
	var name string
	if err == nil {
		err = json.Unmarshal(quoted, &name)
	}
	if err == nil {
		err = l.expect(':')
	}
	if err != nil {
		return err
	}
	if name == "items" || name == "rows" {
		l.name = name
		return l.expect('[')
	}
	value, err := l.value()
	if err != nil {
		return err
	}
	l.members = append(l.members, member{name, bytes.Clone(value)})
	return l.expect(',')
}

// head is what comes before the items and is not of this list alone.
func (l *itemReader) head() []member {
	return slices.DeleteFunc(slices.Clone(l.members[:l.leading]), func(m member) bool { return m.name == "metadata" })
}

// next reads the item after the present one.
func (l *itemReader) next() error {
	c, err := l.peek()
	if err != nil {
		return err
	}
	if c == ',' {
		l.pos++
		return l.read()
	}
	return l.finish()
}

// finish reads what follows the items.
func (l *itemReader) finish() error {
	l.item, l.key = nil, ""
	if err := l.expect(']'); err != nil {
		return err
	}
	for {
		c, err := l.peek()
		switch {
		case err != nil:
			return err
		case c == '}':
			return nil
		case c != ',':
			return errNoList
		}
		l.pos++
		quoted, err := l.value()
		var name string
		if err == nil {
			err = json.Unmarshal(quoted, &name)
		}
		if err == nil {
			err = l.expect(':')
		}
		if err != nil {
			return err
		}
		value, err := l.value()
		if err != nil {
			return err
		}
		l.members = append(l.members, member{name, bytes.Clone(value)})
	}
}

// Where items and rows have their names.
var (
	itemPaths = [2]*jsonpath.Path{jsonpath.FromSegments("metadata", "namespace"), jsonpath.FromSegments("metadata", "name")}
	rowPaths  = [2]*jsonpath.Path{jsonpath.FromSegments("object", "metadata", "namespace"), jsonpath.FromSegments("object", "metadata", "name")}
)

// read reads an item.
func (l *itemReader) read() (err error) {
	if l.item, err = l.value(); err != nil {
		return err
	}
	paths := itemPaths
	if l.name == "rows" {
		paths = rowPaths
	}
	var texts [2]string
	for i, path := range paths {
		value, ok, err := path.FirstJSON(l.item)
		if err != nil {
			return err
		}
		if ok && value.Kind() == jsonpath.KindString {
			texts[i] = value.String()
		}
	}
	l.key = texts[1]
	if texts[0] != "" {
		l.key = texts[0] + "/" + l.key
	}
	if texts[1] == "" {
		return errors.New("an item has no name")
	}
	return nil
}

// value reads a value. It is good until something else is read.
func (l *itemReader) value() ([]byte, error) {
	if _, err := l.peek(); err != nil {
		return nil, err
	}
	for {
		end, ok, more := jsontext.SkipValue(l.data, l.pos)
		switch {
		case ok:
			text := l.data[l.pos:end]
			l.pos = end
			return text, nil
		case !more:
			return nil, errNoList
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// expect reads one character.
func (l *itemReader) expect(want byte) error {
	c, err := l.peek()
	if err == nil && c != want {
		err = errNoList
	}
	l.pos++
	return err
}

// peek returns the next character that is no space.
func (l *itemReader) peek() (byte, error) {
	for {
		if l.pos = jsontext.Space(l.data, l.pos); l.pos < len(l.data) {
			return l.data[l.pos], nil
		}
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads more. What values have been read before are no longer good.
func (l *itemReader) fill() error {
	if l.pos > 0 {
		l.data = l.data[:copy(l.data, l.data[l.pos:])]
		l.pos = 0
	}
	if len(l.data) == cap(l.data) {
		if len(l.data) >= maxItem {
			return errors.New("an item is too large")
		}
		l.data = append(make([]byte, 0, 2*cap(l.data)), l.data...)
	}
	for {
		n, err := l.source.Read(l.data[len(l.data):cap(l.data)])
		l.data = l.data[:len(l.data)+n]
		switch {
		case n > 0:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}
