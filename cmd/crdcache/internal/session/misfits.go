package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
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

// WarnOfMisfits warns of conditions in a query, and of paths, that do not fit the schema of the type, because
// a misspelt field finds nothing without an error. It is a help and no more: a type without a CRD, and a CRD
// that cannot be read, are passed over.
func (t *Target) WarnOfMisfits(ctx context.Context, client dynamic.Interface, r discovery.Resource,
	q query.Query, columns ...Columns) {
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

// definition is a CRD, or why there is none.
type definition struct {
	*crd.Definition
	err error
}

// Definitions fetches each CRD once for a command.
func (t *Target) Definitions(client dynamic.Interface) print.Definitions {
	return func(ctx context.Context, of schema.GroupResource) (*crd.Definition, error) {
		if found, ok := t.fetched.Load(of); ok {
			return found.(definition).Definition, found.(definition).err
		}
		fetched, err := crd.Fetch(ctx, client, of)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			t.fetched.Store(of, definition{fetched, err})
		}
		return fetched, err
	}
}

// Definition gets the CRD of a type. Who may not read CRDs, as most tenants of a cluster may not, gets what
// the server publishes of it for everybody: the schema and the selectable fields from /openapi/v3, and the
// columns of its tables, as far as those tell their paths. A type without a CRD is not found.
func (t *Target) Definition(ctx context.Context, client dynamic.Interface,
	r discovery.Resource) (*crd.Definition, error) {
	definition, err := t.Definitions(client)(ctx, r.GVR.GroupResource())
	if !apierrors.IsForbidden(err) {
		return definition, err
	}
	plain, failed := t.PlainClient()
	if failed != nil {
		return nil, err
	}
	version, failed := published(ctx, plain, r)
	if failed != nil {
		return nil, fmt.Errorf("%w; nor can it be read from /openapi/v3: %w", err, failed)
	}
	if columns, failed := print.ServerColumns(ctx, plain, r, t.Namespace); failed == nil {
		version.Columns = columns
	}
	return &crd.Definition{
		Name: r.GVR.GroupResource().String(), Group: r.GVR.Group, Namespaced: r.Scope == discovery.Namespaced,
		Names: crd.Names{Plural: r.GVR.Resource, Singular: r.Singular, Kind: r.GVK.Kind,
			ShortNames: r.ShortNames, Categories: r.Categories},
		Versions: []crd.Version{version}, Established: true, NamesAccepted: true,
	}, nil
}

// published reads the version of a type from the OpenAPI document of its group.
func published(ctx context.Context, client rest.Interface, r discovery.Resource) (crd.Version, error) {
	version := crd.Version{Name: r.GVR.Version, Served: true}
	body, err := client.Get().AbsPath("/openapi/v3/apis", r.GVR.Group, r.GVR.Version).SetHeader("Accept",
		"application/json").Do(ctx).Raw()
	if err != nil {
		return version, err
	}
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return version, fmt.Errorf("the OpenAPI document of %s is not understood: %w",
			r.GVR.GroupVersion(), err)
	}
	for _, text := range document.Components.Schemas {
		var about struct {
			Kinds  []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			Fields []struct {
				Path string `json:"fieldPath"`
			} `json:"x-kubernetes-selectable-fields"`
		}
		if json.Unmarshal(text, &about) != nil || !slices.Contains(about.Kinds, r.GVK) {
			continue
		}
		version.Schema = &crd.Schema{}
		if err := json.Unmarshal(text, version.Schema); err != nil {
			return version, fmt.Errorf("the OpenAPI schema of %s is not understood: %w", r.GVK, err)
		}
		// It refers to that of ObjectMeta, which a CRD leaves open.
		if version.Schema.Properties != nil {
			version.Schema.Properties["metadata"] = &crd.Schema{Type: "object"}
		}
		for _, field := range about.Fields {
			version.SelectableFields = append(version.SelectableFields, "."+field.Path)
		}
		return version, nil
	}
	return version, fmt.Errorf("the OpenAPI document of %s has no schema of %s",
		r.GVR.GroupVersion(), r.GVK.Kind)
}
