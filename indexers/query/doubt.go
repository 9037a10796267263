package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// dropper is a snapshot that knows what its indexes have left out.
type dropper interface {
	// Dropped counts the values that an index has left out because of its limits.
	Dropped(index string) uint64
}

// warn adds a warning, once.
func (c *compiler) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.warnings, text) {
		c.warnings = append(c.warnings, text)
	}
}

// doubt warns where the answer of an index may not be what a comparison means.
func (c *compiler) doubt(index access, q *comparison) {
	if d, ok := c.snapshot.(dropper); ok && d.Dropped(index.name) > 0 {
		c.warn("index %q has left out values beyond its limits, so that objects may be missing; raise maxValues or maxValueBytes", index.name)
	}
	if index.declared == nil {
		return
	}
	if q.op == opMatches {
		if letter, ok := index.miscased(q.values[0].parts[0]); ok {
			c.
				warn("index %q has its values in another case than %q of the expression, which is taken as it is; begin it with (?i)", index.name, letter)
		}
		return
	}
	for _, v := range q.values {
		for n, part := range index.parts(v, true) {
			if n >= len(index.declared.Types()) || index.declared.Types()[n] != "" {
				continue
			}
			if typ := comparedAsText(q.op, part); typ != "" {
				c.warn("index %q has no type and compares %s as text; declare type: %s",
					index.name, part, typ)
				return
			}
		}
	}
}

// comparedAsText gives the type that a value seems to be of, where it matters that it is compared as text:
// for an order, 9 comes after 10; and even for equality, 1Gi is 1024Mi.
func comparedAsText(op operator, text string) string {
	if text == "" || text == indexers.Null || op == opPrefix || op == opContains {
		return ""
	}
	_, number := sortkey.Number.Key(text)
	_, quantity := sortkey.Quantity.Key(text)
	switch {
	case quantity && !number && (op != opEqual && op != opIn || strings.HasSuffix(text, "i")):
		return "quantity"
	case op == opEqual, op == opIn:
		return ""
	case number:
		return "number"
	}
	for _, typ := range []sortkey.Type{sortkey.Duration, sortkey.SemVer, sortkey.IP} {
		if _, ok := typ.Key(text); ok {
			return typ.String()
		}
	}
	return ""
}
