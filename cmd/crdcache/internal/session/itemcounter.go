package session

import (
	"bytes"
	"regexp"
	"strconv"
)

// itemCounter counts the objects of a list or watch in its JSON. It accepts invalid JSON.
type itemCounter struct {
	watch bool
	// onItem is called for each object.
	onItem func()
	// onRemaining is called at the end of a list with the number of objects on later pages.
	onRemaining func(remaining int64)

	depth           int
	inItems         bool
	quoted, escaped bool
	// head is the beginning of the list or event, without items.
	head []byte
}

// maxHead limits head. The text before the items of a list is shorter.
const maxHead = 4 << 10

var (
	itemsStart     = regexp.MustCompile(`"(items|rows)":\s*\[$`)
	remainingItems = regexp.MustCompile(`"remainingItemCount":\s*(\d+)`)
)

// count reads the next bytes of the body.
func (c *itemCounter) count(text []byte) {
	for _, b := range text {
		if c.depth < 3 && len(c.head) < maxHead {
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
			c.open()
		case b == '}' || b == ']':
			c.close()
		}
	}
}

func (c *itemCounter) open() {
	c.depth++
	switch {
	case c.watch:
	case c.depth == 2:
		c.inItems = itemsStart.Match(c.head)
	case c.depth == 3 && c.inItems:
		c.onItem()
	}
}

func (c *itemCounter) close() {
	c.depth--
	if c.depth != 0 {
		return
	}
	if c.watch {
		if !bytes.HasPrefix(bytes.TrimSpace(c.head), []byte(`{"type":"BOOKMARK"`)) {
			c.onItem()
		}
		c.head = c.head[:0]
	} else if found := remainingItems.FindSubmatch(c.head); found != nil {
		if n, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil {
			c.onRemaining(n)
		}
	}
}
