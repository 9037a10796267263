package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

// maxWhole is the size in bytes above which a YAML list is read item by item. An anchor of such a list is
// known in its own item only.
const maxWhole = 1 << 20

var (
	itemsPattern = regexp.MustCompile(`(?m)^items:[ \t]*(#.*)?$`)
	dashPattern  = regexp.MustCompile(`^ *-\s`)
	// headPattern and kindPattern match fields before and after the items of kubectl's lists.
	headPattern = regexp.MustCompile(`(?m)^apiVersion:`)
	kindPattern = regexp.MustCompile(`(?m)^kind:.*(\n|List$)`)
)

// isLargeList reports whether the start of a document is read item by item.
func isLargeList(text []byte) bool { return len(text) > maxWhole && itemsPattern.Match(text) }

// isCutList reports whether the end of a text lacks the kind that follows the items of a list.
func isCutList(text []byte) bool {
	return itemsPattern.Match(text) && headPattern.Match(text) && !kindPattern.Match(text)
}

// yamlItems splits the text of a YAML list into its items and its other fields. A line with a dash that is
// indented as the dash of the first item begins an item: YAML ends the scalars of the item before it.
type yamlItems struct {
	*list
	state    itemsState
	indent   int    // of the dashes
	text     []byte // of the item, or of the fields, since the last flush
	textLine int
	atEnd    bool
}

type itemsState int

const (
	inFields itemsState = iota
	afterKey            // after the line items:
	inItem
)

// readItems reads the list of which text is the start. It returns false as readYAML does.
func (t *documentReader) readItems(text []byte, firstLine int) (more bool, err error) {
	t.rest, t.line = append(text, t.rest...), firstLine
	y := &yamlItems{list: t.newList(contentLine(text, firstLine)), textLine: firstLine}
	for {
		line, err := t.readLine()
		switch y.atEnd = errors.Is(err, io.EOF); {
		case y.atEnd && (y.hasItems || y.state == afterKey) && y.kind() == "" && y.apiVersion() != "" &&
			!kindPattern.Match(y.text): // the last item can be cut
			y.yield(Entry{Position: Position{Line: y.textLine, Document: y.Document}, Err: ErrTruncated})
			return false, nil
		case y.atEnd || err == nil && t.endsDocument(line):
			return y.flush(0) && y.finish() && !y.atEnd, nil
		case err != nil:
			return false, err
		case !y.addLine(line, t.line-1):
			return false, nil
		case len(y.text) > MaxDocument:
			return false, ErrTooLarge
		}
	}
}

// addLine returns false to stop.
func (y *yamlItems) addLine(line []byte, number int) (more bool) {
	more = true
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	isDash := y.state != inFields && dashPattern.Match(line)
	switch {
	case isDash && y.state == afterKey:
		y.beginItems()
		y.state, y.indent, y.text, y.textLine = inItem, indent, y.text[:0], number
	case isDash && indent == y.indent:
		more = y.flush(number)
	case y.state == inItem && indent <= y.indent && !isBlank(line):
		more = y.flush(number)
		y.state = inFields
	case y.state == inFields && itemsPattern.Match(line):
		more = y.flush(number)
		y.state = afterKey
	case y.state == afterKey && !isBlank(line): // items is no array
		y.state = inFields
	}
	y.text = append(y.text, line...)
	return more
}

// flush yields the item, or adds the fields, that were read. It returns false to stop.
func (y *yamlItems) flush(nextLine int) bool {
	data, err := decodeYAML(y.text, y.textLine, y.atEnd)
	line := lineOf(err, y.textLine)
	y.text, y.textLine = y.text[:0], nextLine
	if y.state == inItem {
		elements, _ := elementsOf(data)
		for _, element := range elements { // one
			if !y.addItem(line, entryOf(element)) {
				return false
			}
		}
		return err == nil || y.addItem(line, Entry{Err: err})
	}
	var fields map[string]json.RawMessage
	if err == nil && string(data) != "null" {
		fields, err = fieldsOf(data)
	}
	for name, value := range fields {
		y.addField(name, value, line)
	}
	at := Position{Line: line, Document: y.Document}
	return err == nil || y.yield(Entry{Position: at, Err: err}) && !y.atEnd
}
