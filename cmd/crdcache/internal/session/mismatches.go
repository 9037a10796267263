package session

import (
	"context"
	"encoding/json"
	"errors"
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

// crdTimeout bounds the request for the CRD with which a query is compared.
const crdTimeout = 5 * time.Second

type FlagPaths struct {
	Flag  string
	Paths []string
}

// UseSchema returns the query with CEL conditions that decode objects with the schema of the type. It warns
// about conditions, paths and indexes of the config that do not match the schema. A misspelled field causes
// no error: it matches nothing. Types without a readable schema are not compared.
func (t *Target) UseSchema(r discovery.Resource, config *Config, q query.Query,
	flagPaths ...FlagPaths) query.Query {
	declared := config.resourcesOf(r)
	pathCount := len(declared.Resources)
	for _, c := range flagPaths {
		pathCount += len(c.Paths)
	}
	// CRD groups contain a dot.
	if !query.UsesWhere(q) && pathCount == 0 || !strings.Contains(r.GVR.Group, ".") {
		return q
	}
	definition, err := t.definitionOf(r)
	if err != nil {
		return t.WithSchema(r, q)
	}
	warn := func(flag string, diagnostics []indexers.Diagnostic) {
		for _, d := range diagnostics {
			if d.Code == "E310" {
				flag = "where-cel"
			}
			t.Warnf("--%s: %s; %s", flag, d.Message, d.Hint)
		}
	}
	var invalid *indexers.ConfigError
	if _, err := declared.Check([]*crd.Definition{definition}); errors.As(err, &invalid) {
		for _, d := range invalid.Diagnostics {
			t.Warnf("%s", d.Text())
		}
	}
	warn("where", query.Check(q, definition, r.GVR.Version))
	for _, c := range flagPaths {
		for _, path := range c.Paths {
			warn(c.Flag, indexers.CheckColumn(path, definition, r.GVR.Version))
		}
	}
	version, _ := definition.Version(r.GVR.Version)
	return query.WithSchema(q, func() *crd.Schema { return version.Schema })
}

// definitionOf is Definition with a client of its own.
func (t *Target) definitionOf(r discovery.Resource) (*crd.Definition, error) {
	client, err := t.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), crdTimeout)
	defer cancel()
	return t.Definition(ctx, client, r)
}

// schemaOf returns the schema of a type; nil for a type without a CRD.
func (t *Target) schemaOf(r discovery.Resource) (*crd.Schema, error) {
	if !strings.Contains(r.GVR.Group, ".") {
		return nil, nil
	}
	definition, err := t.definitionOf(r)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	version, _ := definition.Version(r.GVR.Version)
	return version.Schema, nil
}

// WithSchema returns a query whose CEL conditions read the objects of a type with its schema.
func (t *Target) WithSchema(r discovery.Resource, q query.Query) query.Query {
	return query.WithSchema(q, func() *crd.Schema {
		schema, err := t.schemaOf(r)
		if err != nil {
			t.Warnf("CEL reads numbers without a fraction as integers, because there is no schema: %v", err)
		}
		return schema
	})
}

type fetchedCRD struct {
	*crd.Definition
	err error
}

// Definitions returns a function that fetches each CRD at most once.
func (t *Target) Definitions(client dynamic.Interface) print.Definitions {
	return func(ctx context.Context, resource schema.GroupResource) (*crd.Definition, error) {
		if cached, ok := t.fetchedCRDs.Load(resource); ok {
			return cached.(fetchedCRD).Definition, cached.(fetchedCRD).err
		}
		fetched, err := crd.Fetch(ctx, client, resource)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			t.fetchedCRDs.Store(resource, fetchedCRD{fetched, err})
		}
		return fetched, err
	}
}

// Definition returns the CRD of a type, or a NotFound error. If the user may not read the CRD, Definition
// derives it from the OpenAPI document and the columns of the server's table.
func (t *Target) Definition(ctx context.Context, client dynamic.Interface,
	r discovery.Resource) (*crd.Definition, error) {
	definition, err := t.Definitions(client)(ctx, r.GVR.GroupResource())
	if !apierrors.IsForbidden(err) {
		return definition, err
	}
	plainClient, failed := t.PlainClient()
	if failed != nil {
		return nil, failed
	}
	version, failed := openAPIVersion(ctx, plainClient, r)
	if failed != nil {
		return nil, fmt.Errorf("%w; its OpenAPI document cannot be used either: %w", err, failed)
	}
	version.Columns, _ = print.ServerColumns(ctx, plainClient, r, t.Namespace) // they are optional
	return &crd.Definition{Group: r.GVR.Group, Namespaced: r.Scope == discovery.Namespaced,
		Names: crd.Names{Plural: r.GVR.Resource, Kind: r.GVK.Kind}, Versions: []crd.Version{version}}, nil
}

// plainSchema has no UnmarshalJSON, so that it can be embedded.
type plainSchema crd.Schema

// openAPIVersion derives the version of a type from the OpenAPI document of its group.
func openAPIVersion(ctx context.Context, client rest.Interface, r discovery.Resource) (crd.Version, error) {
	version := crd.Version{Name: r.GVR.Version, Served: true}
	body, err := print.BodyOf(client.Get().AbsPath("/openapi/v3/apis", r.GVR.Group, r.GVR.Version).
		SetHeader("Accept", "application/json").Do(ctx))
	if err != nil {
		return version, err
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				plainSchema
				Kinds  []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
				Fields []struct {
					Path string `json:"fieldPath"`
				} `json:"x-kubernetes-selectable-fields"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return version, fmt.Errorf("decode the OpenAPI document of %s: %w", r.GVR.GroupVersion(), err)
	}
	for _, s := range document.Components.Schemas {
		if !slices.Contains(s.Kinds, r.GVK) {
			continue
		}
		version.Schema = (*crd.Schema)(&s.plainSchema)
		if s.Properties != nil { // a CRD has no schema of ObjectMeta
			s.Properties["metadata"] = &crd.Schema{Type: "object"}
		}
		for _, field := range s.Fields {
			version.SelectableFields = append(version.SelectableFields, "."+field.Path)
		}
		return version, nil
	}
	return version, fmt.Errorf("the OpenAPI document of %s has no schema of %s", r.GVR.GroupVersion(), r.GVK.Kind)
}
