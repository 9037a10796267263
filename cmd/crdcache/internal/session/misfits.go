package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
)

// definitionTimeout bounds the wait for the CRD of a type whose query is compared with it.
const definitionTimeout = 5 * time.Second

// WarnOfMisfits warns of conditions in a query that do not fit the schema of the type, because a misspelt field finds nothing
// without an error. It is a help and no more: a type without a CRD, and a CRD that cannot be read, are passed over.
func (t *Target) WarnOfMisfits(ctx context.Context, client dynamic.Interface, r discovery.Resource, q query.Query) {
	// The group of a CRD has a dot.
	if !query.LooksIntoObjects(q) || !strings.Contains(r.GVR.Group, ".") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	definition, err := t.Definition(ctx, client, r)
	if err != nil {
		return
	}
	for _, d := range query.Check(q, definition, r.GVR.Version) {
		fmt.Fprintf(t.errOut, "warning: --where: %s\n", print.Line(d.Message+"; "+d.Hint))
	}
}
