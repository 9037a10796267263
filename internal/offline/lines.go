package offline

import (
	"bytes"
	"fmt"
	"io"
)

// maxDocument is how large a document, or an item of a list, may be. No API server takes one of a tenth of that,
// and without a limit what is no manifest at all would be read into memory until there is none left.
const maxDocument = 32 << 20

var errTooLarge = fmt.Errorf("a document is larger than %d MiB: is this a file of manifests?", maxDocument>>20)

// lineCounter tells at which line an offset of a stream is, without keeping more than what lies between the
// offsets that are asked for and what has been read ahead.
type lineCounter struct {
	r io.Reader
	// read is how much has been read.
	read int64
	// line is the line at offset at; breaks are the offsets of the line breaks from there on.
	line   int
	breaks []int64
	// asked is the offset that was last asked for. What lies far behind it is too much for a document.
	asked int64
	// idle: nobody will ask any more.
	idle bool
}

func newLineCounter(r io.Reader) *lineCounter { return &lineCounter{r: r, line: 1} }

// Read implements io.Reader.
func (c *lineCounter) Read(p []byte) (int, error) {
	if c.idle {
		return c.r.Read(p)
	}
	if c.read-c.asked > maxDocument {
		return 0, errTooLarge
	}
	n, err := c.r.Read(p)
	for rest, at := p[:n], c.read; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		c.breaks = append(c.breaks, at+int64(i))
		rest, at = rest[i+1:], at+int64(i)+1
	}
	c.read += int64(n)
	return n, err
}

// at returns the line of an offset. Offsets must not go back.
func (c *lineCounter) at(offset int64) int {
	passed := 0
	for passed < len(c.breaks) && c.breaks[passed] < offset {
		passed++
	}
	c.asked = offset
	c.line += passed
	c.breaks = append(c.breaks[:0], c.breaks[passed:]...)
	return c.line
}
