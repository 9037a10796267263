package offline

import (
	"bytes"
	"io"
)

// lineCounter tells at which line an offset of a stream is, without keeping more than what lies between the
// offsets that are asked for and what has been read ahead.
type lineCounter struct {
	r io.Reader
	// read is how much has been read.
	read int64
	// line is the line at offset at; breaks are the offsets of the line breaks from there on.
	line   int
	breaks []int64
}

func newLineCounter(r io.Reader) *lineCounter { return &lineCounter{r: r, line: 1} }

// Read implements io.Reader.
func (c *lineCounter) Read(p []byte) (int, error) {
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
	c.line += passed
	c.breaks = append(c.breaks[:0], c.breaks[passed:]...)
	return c.line
}
