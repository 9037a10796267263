package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// limitReporter is a snapshot that counts values left out of its indexes.
type limitReporter interface {
	// Dropped returns the number of values that an index has left out because of its limits.
	Dropped(index string) uint64
}

// warn adds a warning once.
func (c *compiler) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.warnings, text) {
		c.warnings = append(c.warnings, text)
	}
}

// checkComparison warns if an index may answer a comparison differently than the user expects.
func (c *compiler) checkComparison(index openedIndex, q *comparison) {
	if d, ok := c.snapshot.(limitReporter); ok && d.Dropped(index.name) > 0 {
		c.warn("index %q left out values beyond its limits, so that objects can be missing; raise maxValues or maxValueBytes", index.name)
	}
	if index.declared == nil {
		return
	}
	if q.op == opMatches {
		if letter, ok := index.unmatchableLetter(q.values[0].parts[0]); ok {
			c.warn("index %q changes the case of its values, so that none has %q; begin the expression with (?i)",
				index.name, letter)
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

// comparedAsText returns the type that an operand seems to have, if comparing it as text gives another
// result: as text, 9 comes after 10, and 1Gi is not 1024Mi.
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
