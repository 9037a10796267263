package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// stream reads the items of a list one by one, if that is certain to give the same as reading the document as one; it
// sets l.streams then. It is called behind the line "items:", with what came before in c, and returns false to stop.
func (y *yamlReader) stream(c *chunk, l *list) (more bool, err error) {
	line, err := y.next()
	if errors.Is(err, io.EOF) {
		y.line--
		return true, nil
	}
	if err != nil {
		return false, err
	}
	y.unread(line, 1)
	trimmed := bytes.TrimLeft(line, " ")
	if !isItem(trimmed) {
		return true, nil
	}
	header, certain := c.header()
	if !certain {
		c.whole = true
		return true, nil
	}
	l.streams, l.header = true, header
	items := &yamlItems{yamlReader: y, document: c, list: l, indent: len(line) - len(trimmed)}
	more, err = items.run()
	c.leaveOut(y.line) // so that lines are counted right: what comes now is further down
	return more, err
}

// isItem reports whether a line, without its indentation, begins an element of a sequence.
func isItem(trimmed []byte) bool {
	return bytes.HasPrefix(trimmed, []byte("- ")) || bytes.Equal(bytes.TrimRight(trimmed, "\r\n"), []byte("-"))
}

// yamlItems reads a sequence up to the line that is no part of it. It cuts where a line begins an element, and has the
// library confirm each cut: a text that is a sequence of one element to the end of it leaves nothing open, be it a quote,
// a bracket or a block, so that what follows begins another element; and without anchors nothing else refers to it.
type yamlItems struct {
	*yamlReader
	document *chunk
	list     *list
	indent   int
	item     *chunk
	// alone is set when the rest of the document is no good YAML as a whole: then its items are read as far as each is good
	// by itself.
	alone bool
}

// run reads the sequence and returns false to stop.
func (y *yamlItems) run() (more bool, err error) {
	for {
		line, err := y.next()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return false, err
		}
		trimmed := bytes.TrimLeft(line, " ")
		depth := len(line) - len(trimmed)
		blank := len(bytes.TrimSpace(line)) == 0 || trimmed[0] == '#'
		begins := !blank && depth == y.indent && isItem(trimmed)
		switch {
		case end:
			y.line--
		case isSeparator(line), !blank && depth <= y.indent && !begins:
			y.unread(line, 1)
			end = true
		case begins && y.item != nil:
			y.unread(line, 1)
		case begins:
			y.item = &chunk{first: y.line}
			fallthrough
		default:
			if y.item.add(line); y.item.text.Len() > MaxDocument {
				return false, ErrTooLarge
			}
			continue
		}
		if y.item != nil {
			next, more, err := y.done()
			if next == again && err == nil {
				y.item = nil
				continue
			}
			end = end || next == over
			if err != nil || !more || end {
				return more, err
			}
		}
		if y.item = nil; end {
			return true, nil
		}
	}
}

// step is what to do after an item.
type step int

const (
	another step = iota // item may follow
	again               // reads the same item
	over                // is the list, with the document
)

// done yields the item, or reads the rest of the document as a whole where the item does not stand by itself. It returns
// false to stop.
func (y *yamlItems) done() (next step, more bool, err error) {
	data, err := y.item.decode()
	var one []json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &one)
	}
	certain := len(one) == 1 && !y.item.hasAnchors() || isContent(err)
	switch {
	case !certain && !y.alone:
		return y.rest()
	case err != nil:
		return another, y.list.item(lineOf(err, y.item.first), nil, identity{}, err), nil
	case len(one) != 1:
		return another, y.list.item(y.item.first, nil, identity{}, errUncertain), nil
	}
	var own identity
	if parts, err := partsOf(one[0]); err == nil {
		own = identityOf(parts["apiVersion"], parts["kind"], parts["metadata"])
	}
	return another, y.list.item(y.item.first, one[0], own, nil), nil
}

// errUncertain is for an item that is not one, in a document that cannot be read as a whole.
var errUncertain = errors.New("not valid YAML: it is not clear where this item ends")

// rest reads the document from the item on as a whole. Where that cannot be done, the items are read alone.
func (y *yamlItems) rest() (next step, more bool, err error) {
	y.unread(y.item.text.Bytes(), y.item.lines)
	rest := &chunk{first: y.line + 1}
	for rest.text.Len() <= MaxDocument {
		line, err := y.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return over, false, err
		}
		if err == nil && !isSeparator(line) {
			rest.add(line)
			continue
		}
		if err != nil {
			y.line--
		} else {
			y.unread(line, 1)
		}
		text := &chunk{first: y.document.first}
		text.text.Write(y.document.text.Bytes())
		text.text.WriteString("items:\n")
		text.text.Write(rest.text.Bytes())
		data, err := text.decode()
		if err != nil {
			break
		}
		parts, err := partsOf(data)
		if err != nil {
			break
		}
		y.list.Line = y.item.first
		items := parts["items"]
		delete(parts, "items")
		y.document.parts = parts
		return over, y.list.all(items), nil
	}
	y.unread(rest.text.Bytes(), rest.lines)
	y.alone = true
	return again, true, nil
}
