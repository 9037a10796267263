package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// definitionTimeout bounds the wait for the CRD of a type whose query is compared with it.
const definitionTimeout = 5 * time.Second

// Columns are paths that a flag names.
type Columns struct {
	Flag  string
	Paths []string
}

// WarnOfMisfits warns of conditions in a query, and of paths, that do not fit the schema of the type, because a misspelt field
// finds nothing without an error. It is a help and no more: a type without a CRD, and a CRD that cannot be read, are passed
// over.
func (t *Target) WarnOfMisfits(ctx context.Context, client dynamic.Interface, r discovery.Resource, q query.Query, columns ...Columns) {
	paths := 0
	for _, c := range columns {
		paths += len(c.Paths)
	}
	// The group of a CRD has a dot.
	if !query.LooksIntoObjects(q) && paths == 0 || !strings.Contains(r.GVR.Group, ".") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	definition, err := t.Definition(ctx, client, r)
	if err != nil {
		return
	}
	warn := func(flag string, found []indexers.Diagnostic) {
		for _, d := range found {
			fmt.Fprintf(t.errOut, "warning: --%s: %s\n", flag, print.Line(d.Message+"; "+d.Hint))
		}
	}
	warn("where", query.Check(q, definition, r.GVR.Version))
	for _, c := range columns {
		for _, path := range c.Paths {
			warn(c.Flag, indexers.CheckColumn(path, definition, r.GVR.Version))
		}
	}
}
