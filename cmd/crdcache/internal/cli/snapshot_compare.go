package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/snapshot"
)

// typeDifference is what differs between the objects of a type.
type typeDifference struct {
	Type    string             `json:"type"`
	Added   []string           `json:"added,omitempty"`
	Removed []string           `json:"removed,omitempty"`
	Changed []objectDifference `json:"changed,omitempty"`
}

func (d typeDifference) empty() bool { return len(d.Added)+len(d.Removed)+len(d.Changed) == 0 }

// objectDifference is what differs between two states of an object.
type objectDifference struct {
	Key     string        `json:"key"`
	Changes []fieldChange `json:"changes"`
	changes []print.Change
}

// fieldChange is a field that differs: Old is left out for one that is new, New for one that is gone.
type fieldChange struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// comparison compares the objects of two snapshots.
type comparison struct {
	before, after *snapshot.File
	// only is the namespace that is compared; empty for all.
	only string
	// ignored is left out of what is compared.
	ignored []string
}

// typeOf compares a type. Objects whose JSON is the same are not decoded.
func (c *comparison) typeOf(ctx context.Context, gr schema.GroupResource) (typeDifference, error) {
	d := typeDifference{Type: gr.String()}
	without := c.without(gr)
	before, stopBefore := iter.Pull2(c.records(c.before, gr))
	defer stopBefore()
	after, stopAfter := iter.Pull2(c.records(c.after, gr))
	defer stopAfter()
	a, errA, inA := before()
	b, errB, inB := after()
	for (inA || inB) && ctx.Err() == nil {
		switch {
		case errA != nil:
			return d, fmt.Errorf("the first snapshot: %w", errA)
		case errB != nil:
			return d, fmt.Errorf("the second snapshot: %w", errB)
		case !inB || inA && a.Key < b.Key:
			d.Removed = append(d.Removed, a.Key)
			a, errA, inA = before()
		case !inA || b.Key < a.Key:
			d.Added = append(d.Added, b.Key)
			b, errB, inB = after()
		default:
			if !bytes.Equal(a.JSON, b.JSON) {
				changed, err := differing(gr, a, b, without)
				if err != nil {
					return d, fmt.Errorf("%s %s: %w", gr, a.Key, err)
				}
				if len(changed.changes) > 0 {
					d.Changed = append(d.Changed, changed)
				}
			}
			a, errA, inA = before()
			b, errB, inB = after()
		}
	}
	return d, ctx.Err()
}

// records are those of a type which both snapshots would have: one may have those of a namespace alone.
func (c *comparison) records(f *snapshot.File, gr schema.GroupResource) iter.Seq2[snapshot.Record, error] {
	objects := f.Objects(gr)
	if objects == nil {
		return func(func(snapshot.Record, error) bool) {}
	}
	if c.only == "" || !objects.Saved().Namespaced {
		return objects.All
	}
	return func(yield func(snapshot.Record, error) bool) {
		for r, err := range objects.All {
			if (err != nil || strings.HasPrefix(r.Key, c.only+"/")) && !yield(r, err) {
				return
			}
		}
	}
}

// heartbeats are fields that a client writes every few seconds or minutes only to show that it is alive.
var heartbeats = map[schema.GroupResource]string{
	{Group: "coordination.k8s.io", Resource: "leases"}: ".spec.renewTime",
	{Resource: "nodes"}: ".status.conditions[*].lastHeartbeatTime",
}

// without returns the fields of a type that are not compared: heartbeats, the fields that the user ignores,
// and the fields that were redacted in one of the snapshots.
func (c *comparison) without(gr schema.GroupResource) omission {
	without := omissionOf(c.ignored)
	if path := heartbeats[gr]; path != "" {
		without.prune.Paths = append(without.prune.Paths, path)
	}
	for _, redacted := range slices.Concat(c.before.Contents().Redacted, c.after.Contents().Redacted) {
		if slices.Contains(redacted.Resources, gr.String()) {
			without.prune.Paths = append(without.prune.Paths, redacted.Paths...)
		}
	}
	return without
}

// omission is what is left out of objects before they are compared.
type omission struct {
	prune dynamicinformer.Prune
	// fields are those of identity.
	fields [][]string
}

// identity are fields that a Prune does not leave out, because caches need them. A comparison does not: it
// goes by keys.
var identity = map[string][]string{
	".apiVersion": {"apiVersion"}, ".kind": {"kind"}, ".metadata": {"metadata"},
	".metadata.name": {"metadata", "name"}, ".metadata.namespace": {"metadata", "namespace"},
	".metadata.uid": {"metadata", "uid"}, ".metadata.resourceVersion": {"metadata", "resourceVersion"},
}

// omissionOf leaves out managedFields, which change with every write, and the fields that the user ignores.
func omissionOf(ignored []string) omission {
	var o omission
	o.prune.Presets = []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	for _, one := range ignored {
		switch {
		case one == "status":
			o.prune.Paths = append(o.prune.Paths, ".status")
		case identity[one] != nil:
			o.fields = append(o.fields, identity[one])
		default:
			o.prune.Paths = append(o.prune.Paths, one)
		}
	}
	return o
}

// apply leaves the same out of a decoded object, which it changes.
func (o omission) apply(object *unstructured.Unstructured) error {
	if err := o.prune.Apply(object); err != nil {
		return err
	}
	for _, field := range o.fields {
		unstructured.RemoveNestedField(object.Object, field...)
	}
	return nil
}

// differing compares two states of an object field by field.
func differing(of schema.GroupResource, a, b snapshot.Record, without omission) (objectDifference, error) {
	before, err := decodedWithout(a, without)
	if err != nil {
		return objectDifference{}, err
	}
	after, err := decodedWithout(b, without)
	if err != nil {
		return objectDifference{}, err
	}
	d := objectDifference{Key: strings.Clone(a.Key), changes: print.Compare(of, before, after)}
	for _, change := range d.changes {
		field := fieldChange{Path: change.Path}
		if change.HasOld {
			if field.Old, err = json.Marshal(change.Old); err != nil {
				return d, err
			}
		}
		if change.HasNew {
			if field.New, err = json.Marshal(change.New); err != nil {
				return d, err
			}
		}
		d.Changes = append(d.Changes, field)
	}
	return d, nil
}

func decodedWithout(r snapshot.Record, without omission) (map[string]any, error) {
	var u unstructured.Unstructured
	if err := utiljson.Unmarshal(r.JSON, &u.Object); err != nil {
		return nil, err
	}
	return u.Object, without.apply(&u)
}
