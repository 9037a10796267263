package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/snapshot"
)

type typeDifference struct {
	Type    string             `json:"type"`
	Added   []string           `json:"added,omitempty"`
	Removed []string           `json:"removed,omitempty"`
	Changed []objectDifference `json:"changed,omitempty"`
}

type objectDifference struct {
	Key     string        `json:"key"`
	Changes []fieldChange `json:"changes"`
	changes []display.Change
}

// fieldChange is a changed field. An added field has no Old, a removed field no New.
type fieldChange struct {
	Path string `json:"path"`
	Old  *any   `json:"old,omitempty"`
	New  *any   `json:"new,omitempty"`
}

type snapshotComparison struct {
	files [2]*snapshot.File // before and after
	// namespace limits the comparison. Empty means all namespaces.
	namespace string
	// ignoredPaths are the fields from --ignore.
	ignoredPaths []string
}

// compareType compares the objects of a type. Objects with equal JSON are not decoded.
func (c *snapshotComparison) compareType(ctx context.Context, gr schema.GroupResource) (typeDifference,
	error) {
	d := typeDifference{Type: gr.String()}
	ignored := c.ignoredFields(gr)
	before, stopBefore := iter.Pull2(c.recordsByKey(c.files[0], gr))
	defer stopBefore()
	after, stopAfter := iter.Pull2(c.recordsByKey(c.files[1], gr))
	defer stopAfter()
	a, errA, inA := before()
	b, errB, inB := after()
	for (inA || inB) && ctx.Err() == nil {
		switch {
		case errA != nil:
			return d, fmt.Errorf("read the first snapshot: %w", errA)
		case errB != nil:
			return d, fmt.Errorf("read the second snapshot: %w", errB)
		case !inB || inA && a[0].Key < b[0].Key:
			d.Removed = append(d.Removed, keysOf(a)...)
			a, errA, inA = before()
		case !inA || b[0].Key < a[0].Key:
			d.Added = append(d.Added, keysOf(b)...)
			b, errB, inB = after()
		default:
			if err := d.compareKey(gr, a, b, ignored); err != nil {
				return d, fmt.Errorf("%s %s: %w", gr, a[0].Key, err)
			}
			a, errA, inA = before()
			b, errB, inB = after()
		}
	}
	return d, ctx.Err()
}

func keysOf(records []snapshot.Record) []string {
	return naming.Texts(records, func(r snapshot.Record) string { return r.Key })
}

// compareKey compares the objects with one key. Of several, it first matches equal ones.
func (d *typeDifference) compareKey(gr schema.GroupResource, before, after []snapshot.Record,
	ignored ignoredFields) error {
	after = slices.Clone(after)
	before = slices.DeleteFunc(slices.Clone(before), func(a snapshot.Record) bool {
		i := slices.IndexFunc(after, func(b snapshot.Record) bool { return bytes.Equal(a.JSON, b.JSON) })
		if i >= 0 {
			after = slices.Delete(after, i, i+1)
		}
		return i >= 0
	})
	both := min(len(before), len(after))
	for i := range both {
		changed, err := compareObjects(gr, before[i], after[i], ignored)
		if err != nil {
			return err
		}
		if len(changed.changes) > 0 {
			d.Changed = append(d.Changed, changed)
		}
	}
	d.Removed = append(d.Removed, keysOf(before[both:])...)
	d.Added = append(d.Added, keysOf(after[both:])...)
	return nil
}

// recordsByKey returns the objects of each key in the compared namespace.
func (c *snapshotComparison) recordsByKey(f *snapshot.File,
	gr schema.GroupResource) iter.Seq2[[]snapshot.Record, error] {
	objects, from, to := f.Objects(gr), "", ""
	if objects == nil {
		return func(func([]snapshot.Record, error) bool) {}
	}
	if c.namespace != "" && objects.Type().Namespaced {
		from, to = c.namespace+"/", c.namespace+"0" // "0" follows "/"
	}
	return func(yield func([]snapshot.Record, error) bool) {
		var group []snapshot.Record
		for r, err := range objects.Range(from, to) {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) > 0 && r.Key != group[0].Key {
				if !yield(group, nil) {
					return
				}
				group = nil
			}
			// The keys of ordered objects are distinct, and a record is valid only until the next.
			if group = append(group, r); objects.Ordered() {
				if !yield(group, nil) {
					return
				}
				group = nil
			}
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

// heartbeatFields are fields that clients renew periodically.
var heartbeatFields = map[schema.GroupResource]string{
	{Group: "coordination.k8s.io", Resource: "leases"}: ".spec.renewTime",
	{Resource: "nodes"}: ".status.conditions[*].lastHeartbeatTime",
}

// ignoredFields returns the fields of a type that are not compared: heartbeats, the fields of --ignore, and
// the fields redacted in either snapshot.
func (c *snapshotComparison) ignoredFields(gr schema.GroupResource) ignoredFields {
	ignored := newIgnoredFields(c.ignoredPaths)
	if path := heartbeatFields[gr]; path != "" {
		ignored.prune.Paths = append(ignored.prune.Paths, path)
	}
	for i, file := range c.files {
		if objects := file.Objects(gr); objects != nil {
			ignored.typeVersions[i] = objects.Type().Version
		}
	}
	for _, redaction := range slices.Concat(c.files[0].Contents().Redacted, c.files[1].Contents().Redacted) {
		if slices.Contains(redaction.Resources, gr.String()) {
			ignored.prune.Paths = append(ignored.prune.Paths, redaction.Paths...)
		}
	}
	return ignored
}

// ignoredFields are removed from objects before they are compared.
type ignoredFields struct {
	prune dynamicinformer.Prune
	// removedIdentity are the paths of the removed identityFields.
	removedIdentity [][]string
	// typeVersions are the versions of the type, which can differ. Files have objects in other versions, too.
	typeVersions [2]string
}

// identityFields are fields that a Prune keeps, because caches need them.
var identityFields = map[string][]string{
	".apiVersion": {"apiVersion"}, ".kind": {"kind"}, ".metadata": {"metadata"},
	".metadata.name": {"metadata", "name"}, ".metadata.namespace": {"metadata", "namespace"},
	".metadata.uid": {"metadata", "uid"}, ".metadata.resourceVersion": {"metadata", "resourceVersion"},
}

// newIgnoredFields adds metadata.managedFields, which changes with every write.
func newIgnoredFields(paths []string) ignoredFields {
	presets := []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	return ignoredFields{prune: dynamicinformer.Prune{Presets: presets}}.with(paths)
}

// with returns a copy that also ignores the paths.
func (fields ignoredFields) with(paths []string) ignoredFields {
	fields.prune.Paths = slices.Clip(fields.prune.Paths)
	fields.removedIdentity = slices.Clip(fields.removedIdentity)
	for _, path := range paths {
		switch {
		case path == "status":
			fields.prune.Paths = append(fields.prune.Paths, ".status")
		case identityFields[path] != nil:
			fields.removedIdentity = append(fields.removedIdentity, identityFields[path])
		default:
			fields.prune.Paths = append(fields.prune.Paths, path)
		}
	}
	return fields
}

// compareObjects compares two states of an object by field.
func compareObjects(resource schema.GroupResource, a, b snapshot.Record,
	ignored ignoredFields) (objectDifference, error) {
	if a.Version == ignored.typeVersions[0] && b.Version == ignored.typeVersions[1] {
		ignored.removedIdentity = append(slices.Clip(ignored.removedIdentity), identityFields[".apiVersion"])
	}
	var objects [2]unstructured.Unstructured
	for i, r := range []snapshot.Record{a, b} {
		if err := utiljson.Unmarshal(r.JSON, &objects[i].Object); err != nil {
			return objectDifference{}, err
		}
	}
	if objects[0].GetUID() == "" || objects[1].GetUID() == "" {
		ignored = ignored.with(instanceFields)
	}
	for i := range objects {
		if err := ignored.prune.Apply(&objects[i]); err != nil {
			return objectDifference{}, err
		}
		for _, field := range ignored.removedIdentity {
			unstructured.RemoveNestedField(objects[i].Object, field...)
		}
	}
	d := objectDifference{Key: strings.Clone(a.Key),
		changes: print.Compare(resource, objects[0].Object, objects[1].Object)}
	for _, change := range d.changes {
		field := fieldChange{Path: print.PathText(change.Path)}
		if change.HasOld {
			field.Old = &change.Old
		}
		if change.HasNew {
			field.New = &change.New
		}
		d.Changes = append(d.Changes, field)
	}
	return d, nil
}
