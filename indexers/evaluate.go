package indexers

import (
	"context"
	"errors"
	"strings"

	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsontext"
)

var documentDecoder = jsontext.NewDecoder()

// eval evaluates an expression on the object, which is decoded once for all expressions.
func (c *collector) eval(e expression.Expression) (any, error) {
	if c.document == nil {
		object, _ := c.root.decoded.(map[string]any)
		return e.Eval(context.Background(), object)
	}
	if c.object == nil {
		object, err := documentDecoder.Decode(c.document)
		if err != nil {
			return nil, err
		}
		c.object = object
	}
	return e.Eval(context.Background(), c.object)
}

// conditionHolds reports whether a condition selects the object. An object on which it fails is not selected.
func (c *collector) conditionHolds(condition expression.Expression) bool {
	switch result, _ := c.eval(condition); result {
	case true:
		return true
	case false:
		c.notSelected.Add(1)
	default:
		c.countFailed()
	}
	return false
}

// readCEL reads the values of a part's expression into c.scalars, and reports whether it could be evaluated.
// A missing field is a missing value, as with a path.
func (c *collector) readCEL(part *indexPart) bool {
	c.scalars = c.scalars[:0]
	result, err := c.eval(part.cel)
	var unusable *expression.UnusableError
	switch {
	case errors.Is(err, expression.ErrMissing):
		return true
	case errors.As(err, &unusable):
		c.mistyped.Add(1)
		return false
	case err != nil:
		c.countFailed()
		return false
	}
	values, isList := result.([]any)
	if isList && part.single {
		c.mistyped.Add(1)
		return false
	}
	if !isList {
		values = []any{result}
	}
	for _, v := range values {
		s := scalarOf(v)
		s.text = strings.Clone(s.text) // must not reference the document
		c.scalars = append(c.scalars, s)
	}
	return true
}

func (c *collector) countFailed() {
	c.failedExpressions.Add(1)
	c.report(c.objectKey)
}
