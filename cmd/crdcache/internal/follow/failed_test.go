package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/expression"
)

// failingExpression is an expression that fails on each object.
type failingExpression struct{ expression.Expression }

func (failingExpression) Eval(context.Context, map[string]any) (any, error) {
	return nil, errors.New("cost limit exceeded")
}

func (failingExpression) String() string { return "costly" }

// TestFailedConditions verifies that a watch warns about the first objects on which a condition fails.
func TestFailedConditions(t *testing.T) {
	expression.SetCompiler(func(string) (expression.Expression, error) { return failingExpression{}, nil })
	matcher, err := query.NewMatcher(query.WhereCEL("costly"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	f := Options{}.newFeed(nil, nil, matcher)
	f.warn = func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	for n := range maxFailureWarnings + 2 {
		u := withRow("5", "red", "3s")
		u.SetName(fmt.Sprint("o", n))
		f.events.OnAdd(u, true)
		if n < maxFailureWarnings {
			want = append(want, fmt.Sprintf("warning: not shown: costly fails on o%d: cost limit exceeded", n))
		}
	}
	last := got[len(got)-1]
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" || !strings.Contains(last, "further failures") {
		t.Errorf("the last warning is %q, want one about further failures; the others (-want +got):\n%s", last, diff)
	}
}
