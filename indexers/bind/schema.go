package bind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

// boundResource is the settings of a type, bound to its schema.
type boundResource struct {
	resource *indexers.Resource
	// declared is the resource before it was bound to the schema. It has all indexes.
	declared *indexers.Resource
	schema   *typeSchema // nil if no expression needs one
	// refusals are the reasons why indexes of the resource are missing.
	refusals []error
}

// resourceOf returns the settings of a target with the schema that its expressions need.
func (b *Binding) resourceOf(ctx context.Context, s *Settings, d desiredTarget) (r boundResource, err error) {
	if d.resource == nil {
		r.declared, err = s.ResourceOf(d.typ)
	} else {
		r.declared, err = s.limit(d.resource, d.typ)
	}
	if err != nil {
		return r, err
	}
	r.resource, r.refusals = r.declared.WithSchema(func() (*crd.Schema, error) {
		r.schema = b.schemas.of(ctx, d.typ)
		return r.schema.schema, r.schema.err
	})
	if r.schema != nil && r.schema.stale != nil {
		r.refusals = append(r.refusals, r.schema.stale)
	}
	return r, nil
}

// equals reports whether two resources with the same settings have the same indexes, references, metrics and
// refusals.
func (r boundResource) equals(other boundResource) bool {
	c := indexers.DiffResources(r.resource, other.resource)
	return len(c.Added)+len(c.Removed) == 0 && !c.References && !c.Metrics &&
		fmt.Sprint(r.refusals) == fmt.Sprint(other.refusals)
}

// schemas belong to the types with expressions that need one. Each is read once for each change of the CRD.
type schemas struct {
	read   func(context.Context, schema.GroupVersionResource) (*crd.Schema, error) // nil without a source
	byType map[schema.GroupVersionResource]*typeSchema
	timer  *time.Timer // for the next due schema
}

// typeSchema is the schema of a type, or the reason why it is unknown.
type typeSchema struct {
	uid        types.UID
	generation int64
	schema     *crd.Schema // nil for a type without a CRD
	err        error
	stale      error // set for an earlier schema that could not be read again
	failures   int
	due        time.Time // of the next attempt; zero if a change of the CRD causes it
}

const (
	// readTimeout bounds the request for a CRD.
	readTimeout = 5 * time.Second
	// pollInterval is the time after which a CRD is read again while its changes are not observed.
	pollInterval = 30 * time.Second
)

// of returns the schema of a type. Callers hold changing.
func (s *schemas) of(ctx context.Context, typ discovery.Resource) *typeSchema {
	known, now := s.byType[typ.GVR], time.Now()
	if known != nil && known.uid == typ.CRDUID && known.generation == typ.CRDGeneration &&
		(known.due.IsZero() || now.Before(known.due)) {
		return known
	}
	next := &typeSchema{uid: typ.CRDUID, generation: typ.CRDGeneration}
	s.byType[typ.GVR] = next
	_, isBuiltin := naming.FindBuiltin(typ.GVR.Group, typ.GVK.Kind, typ.GVR.Resource)
	switch {
	case isBuiltin || !strings.Contains(typ.GVR.Group, "."): // CRD groups contain a dot
		return next
	case s.read == nil:
		next.err = errors.New("the binding cannot read CRDs: set bind.Options.Schema, or follow a tracker")
		return next
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	next.schema, next.err = s.read(ctx, typ.GVR)
	switch {
	case next.err == nil && next.schema == nil && typ.CRDUID != "":
		next.err = errors.New("its CRD has just been deleted")
	case next.err == nil && next.schema != nil && typ.CRDGeneration == 0:
		next.due = now.Add(pollInterval)
	}
	if next.err == nil {
		return next
	}
	if known != nil {
		next.failures = known.failures + 1
	}
	next.due = now.Add(min(time.Second<<min(next.failures, 5), pollInterval))
	if known != nil && known.schema != nil && known.uid == next.uid {
		next.stale = fmt.Errorf("the schema of the indexes can be out of date: %w", next.err)
		next.schema, next.err = known.schema, nil
	}
	return next
}

// reconcileAgain reconciles when the next schema is due, and forgets unused ones. Callers hold changing.
func (b *Binding) reconcileAgain() {
	var next time.Time
	used := map[*typeSchema]bool{}
	for _, s := range b.slots() {
		for _, t := range s.targets() {
			used[t.schema] = true
			if t.schema != nil && !t.schema.due.IsZero() && (next.IsZero() || t.schema.due.Before(next)) {
				next = t.schema.due
			}
		}
	}
	maps.DeleteFunc(b.schemas.byType,
		func(_ schema.GroupVersionResource, s *typeSchema) bool { return !used[s] })
	if b.schemas.timer != nil {
		b.schemas.timer.Stop()
	}
	if !next.IsZero() {
		b.schemas.timer = time.AfterFunc(time.Until(next),
			func() { _ = b.reconcile(nil) }) // OnProblem reports the errors
	}
}
