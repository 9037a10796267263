package bind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

// boundResource is a resource with the schema of a type.
type boundResource struct {
	resource *indexers.Resource
	// declared is the resource without the schema, which has all indexes.
	declared *indexers.Resource
	// definition has the schema; nil if no expression needs one.
	definition *definition
	// refusals are the reasons why indexes of the resource are missing.
	refusals []error
}

// resourceOf returns the resource of a target.
func (b *Binding) resourceOf(ctx context.Context, s *Settings, d desired) (bound boundResource, err error) {
	if d.resource == nil {
		bound.declared, err = s.ResourceOf(d.typ)
	} else {
		bound.declared, err = s.limit(d.resource, d.typ)
	}
	if err != nil {
		return bound, err
	}
	bound.resource, bound.refusals = bound.declared.WithSchema(func() (*crd.Schema, error) {
		bound.definition = b.definitions.of(ctx, d.typ)
		return bound.definition.schema(d.typ.GVR.Version)
	})
	if bound.definition != nil && bound.definition.stale != nil {
		bound.refusals = append(bound.refusals, bound.definition.stale)
	}
	return bound, nil
}

// equals reports whether two resources with the same settings have the same indexes, references, metrics and
// refusals.
func (r boundResource) equals(other boundResource) bool {
	c := indexers.DiffResources(r.resource, other.resource)
	return len(c.Added)+len(c.Removed) == 0 && !c.References && !c.Metrics &&
		fmt.Sprint(r.refusals) == fmt.Sprint(other.refusals)
}

// definitions are the CRDs of the types whose expressions need a schema. Each is read once for each change.
type definitions struct {
	read   func(context.Context, schema.GroupResource) (*crd.Definition, error) // nil without a source
	byType map[schema.GroupResource]*definition
	timer  *time.Timer // for the next due definition
}

// definition is a CRD, or the reason why it is unknown.
type definition struct {
	uid        types.UID
	generation int64
	definition *crd.Definition // nil for a type without a CRD
	err        error
	stale      error // set for an earlier definition that could not be read again
	failures   int
	due        time.Time // of the next attempt; zero if a change of the CRD causes it
}

const (
	// readTimeout bounds the request for a CRD.
	readTimeout = 5 * time.Second
	// pollInterval is the time after which a CRD is read again while its changes are not observed.
	pollInterval = 30 * time.Second
)

var errNoDefinitions = errors.New("the binding cannot read CRDs: set bind.Options.Definition, or follow a tracker")

// of returns the definition of a type. Callers hold changing.
func (d *definitions) of(ctx context.Context, typ discovery.Resource) *definition {
	gr, now := typ.GVR.GroupResource(), time.Now()
	known := d.byType[gr]
	if known != nil && known.uid == typ.CRDUID && known.generation == typ.CRDGeneration &&
		(known.due.IsZero() || now.Before(known.due)) {
		return known
	}
	next := &definition{uid: typ.CRDUID, generation: typ.CRDGeneration}
	_, isBuiltin := naming.FindBuiltin(gr.Group, typ.GVK.Kind, gr.Resource)
	switch {
	case isBuiltin || !strings.Contains(gr.Group, "."): // CRD groups contain a dot
	case d.read == nil:
		next.err = errNoDefinitions
	default:
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		next.definition, next.err = d.read(ctx, gr)
		cancel()
		if typ.CRDUID == "" && apierrors.IsNotFound(next.err) {
			next.err = nil // an aggregated type
		}
		if next.err != nil {
			if known != nil {
				next.failures = known.failures + 1
			}
			next.due = now.Add(min(time.Second<<min(next.failures, 5), pollInterval))
		} else if next.definition != nil && typ.CRDGeneration == 0 {
			next.due = now.Add(pollInterval)
		}
	}
	if known != nil && next.err != nil && known.definition != nil && known.uid == next.uid {
		next.definition, next.err, next.stale = known.definition, nil,
			fmt.Errorf("the schema of the indexes can be out of date: %w", next.err)
	}
	d.byType[gr] = next
	return next
}

// schema returns the schema of a version; nil for a type without a CRD or a version without a schema.
func (d *definition) schema(version string) (*crd.Schema, error) {
	if d.err != nil || d.definition == nil {
		return nil, d.err
	}
	v, ok := d.definition.Version(version)
	if !ok {
		return nil, fmt.Errorf("the CRD %s has no version %s", d.definition.Name, version)
	}
	return v.Schema, nil
}

// reconcileAgain reconciles when the next definition is due, and forgets unused ones. Callers hold changing.
func (b *Binding) reconcileAgain() {
	var next time.Time
	used := map[*definition]bool{}
	for _, s := range b.slots() {
		for _, t := range s.targets() {
			d := t.definition
			if used[d] = true; d != nil && !d.due.IsZero() && (next.IsZero() || d.due.Before(next)) {
				next = d.due
			}
		}
	}
	maps.DeleteFunc(b.definitions.byType, func(_ schema.GroupResource, d *definition) bool { return !used[d] })
	if b.definitions.timer != nil {
		b.definitions.timer.Stop()
	}
	if !next.IsZero() {
		b.definitions.timer = time.AfterFunc(time.Until(next), func() { _ = b.reconcile(nil) }) // see OnProblem
	}
}
