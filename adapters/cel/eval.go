package cel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/crdcache/crdcache/internal/expression"
)

func (c *celExpression) Eval(ctx context.Context, object map[string]any) (any, error) {
	var value any = object
	if c.schema != nil {
		value = common.UnstructuredToVal(object, c.schema)
	}
	result, _, err := c.program.ContextEval(ctx, map[string]any{self: value})
	switch {
	case err == nil:
		return toGoValue(result)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isMissing(err):
		return nil, fmt.Errorf("%w: %w", expression.ErrMissing, err)
	}
	return nil, err
}

// isMissing reports whether an expression failed because the object lacks a key or an element. cel-go has no
// type for these errors.
func isMissing(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.HasPrefix(text, "no such key: ") ||
			strings.HasPrefix(text, "index out of bounds: ") {
			return true
		}
	}
	return false
}

// toGoValue converts a result to a scalar, or a list of scalars.
func toGoValue(result ref.Val) (any, error) {
	list, isList := result.(traits.Lister)
	if !isList {
		return scalar(result)
	}
	values := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		v, err := scalar(it.Next())
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func scalar(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return float64(v), nil
	case types.Double:
		return float64(v), nil
	case types.Null:
		return nil, nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return toGoValue(v.GetValue())
	}
	return nil, &expression.UnusableError{Type: v.Type().TypeName()}
}
