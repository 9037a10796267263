package session

import (
	"bytes"
	"regexp"
	"strconv"
)

// itemCounter counts the objects in the body of a list or a watch while it passes by. What it reads is only shown to a
// person, so it looks at the structure of the JSON alone, and takes anything.
type itemCounter struct {
	watch bool
	// tell is told of objects, and at the end of a page of how many come after it; below zero that is not known.
	tell func(objects int, remaining int64)

	depth           int
	inArray         bool // the container at depth 2 is an array: that of the items
	quoted, escaped bool
	head            []byte // what came before the items, or the beginning of an event
	remaining       int64  // after this page; below zero where that is not known
	known           bool   // it was looked for
}

// maxHead is more than comes before the items of a list.
const maxHead = 4 << 10

var remainingItems = regexp.MustCompile(`"remainingItemCount":\s*(\d+)`)

// Write takes a part of the body.
func (c *itemCounter) Write(p []byte) (int, error) {
	objects := 0
	for _, b := range p {
		if !c.known && len(c.head) < maxHead {
			c.head = append(c.head, b)
		}
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			objects += c.open(b)
		case b == '}' || b == ']':
			c.depth--
			objects += c.close()
			if c.known && c.depth == 0 && c.remaining >= 0 { // the end of the page
				c.tell(objects, -1)
				c.tell(0, c.remaining)
				objects, c.remaining = 0, -1
			}
		}
	}
	if objects > 0 {
		c.tell(objects, -1)
	}
	return len(p), nil
}

func (c *itemCounter) open(b byte) int {
	c.depth++
	if c.watch {
		return 0
	}
	if c.depth == 2 {
		if c.inArray = b == '['; c.inArray && !c.known {
			c.known, c.remaining = true, -1
			if found := remainingItems.FindSubmatch(c.head); found != nil {
				if n, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil {
					c.remaining = n
				}
			}
			c.head = nil
		}
	}
	if c.depth == 3 && c.inArray {
		return 1
	}
	return 0
}

func (c *itemCounter) close() int {
	if !c.watch || c.depth > 0 {
		return 0
	}
	bookmark := bytes.HasPrefix(bytes.TrimSpace(c.head), []byte(`{"type":"BOOKMARK"`))
	c.head = c.head[:0]
	if bookmark {
		return 0
	}
	return 1
}
