package cli

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/snapshot"
)

// instanceFields differ between the objects of two clusters even if both were created from one manifest.
var instanceFields = []string{".metadata.uid", ".metadata.creationTimestamp", ".metadata.ownerReferences[*].uid"}

// ignoredFields returns the fields of --ignore, and those that always differ between clusters.
func (o *snapshotDiffVerb) ignoredFields() []string {
	for _, source := range o.sources {
		if source.target != nil && source.target.Cluster != "" {
			return slices.Concat(o.ignore, instanceFields)
		}
	}
	return o.ignore
}

// open reads both sources. A file is opened first, because it determines the types that are read from the
// cluster.
func (o *snapshotDiffVerb) open(ctx context.Context, c *snapshotComparison) (err error) {
	for i, source := range o.sources {
		if source.target == nil {
			if c.files[i], err = snapshot.Open(source.name); err != nil {
				return err
			}
		}
	}
	for i, source := range o.sources {
		if source.target != nil {
			if c.files[i], err = o.read(ctx, source.target, c.files[1-i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// close closes the sources that were opened.
func (c *snapshotComparison) close() {
	for _, f := range c.files {
		if f != nil {
			_ = f.Close() // only read
		}
	}
}

// read saves the current state of a cluster in memory. It reads the types of the other source, if that is
// known, and otherwise all types.
func (o *snapshotDiffVerb) read(ctx context.Context, from *session.Target,
	other *snapshot.File) (*snapshot.File, error) {
	if err := from.Invalid(); err != nil {
		return nil, err
	}
	limitedCtx, cancel := from.Limit(ctx)
	defer cancel()
	catalog, err := from.Catalog(limitedCtx)
	if err != nil {
		return nil, err
	}
	saver := &snapshotSaver{target: from, allTypes: catalog.Resources(), namespace: o.namespace}
	if other != nil {
		saver.namespace = cmp.Or(other.Contents().Namespace, o.namespace)
	}
	saver.types = o.typesToRead(saver.allTypes, other)
	var text bytes.Buffer
	saver.writer = snapshot.NewWriter(&text, snapshot.Origin{})
	if failed, err := saver.save(ctx); failed {
		return nil, err
	}
	// An unreadable type is recorded as missing, with the reason.
	if err := saver.writer.Commit(); err != nil {
		return nil, err
	}
	return snapshot.NewFile(bytes.NewReader(text.Bytes()), int64(text.Len()))
}

// typesToRead returns the named types, or else those of the other source in the same version. If that has all
// types, or is nil, it returns all types but events.
func (o *snapshotDiffVerb) typesToRead(all []discovery.Resource, other *snapshot.File) []discovery.Resource {
	otherHasAll := true
	if other != nil {
		otherHasAll = !slices.ContainsFunc(other.Contents().Types, func(s snapshot.SavedType) bool {
			return s.NotRequested && !isEvents(s.GVR().GroupResource())
		})
	}
	var chosen []discovery.Resource
	for _, r := range all {
		named := o.isNamed(r)
		var saved *snapshot.Objects
		if other != nil {
			saved = other.Objects(r.GVR.GroupResource())
		}
		switch {
		case !r.Watchable() || len(o.types) > 0 && !named || isEvents(r.GVR.GroupResource()) && !named:
		case saved != nil && saved.Type().Missing == nil:
			if saved.Type().Version == r.GVR.Version {
				chosen = append(chosen, r)
			}
		case r.Preferred && saved == nil && (otherHasAll || named):
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// isNamed reports whether an argument names a type.
func (o *snapshotDiffVerb) isNamed(r discovery.Resource) bool {
	names := slices.Concat([]string{r.GVR.Resource, r.Singular, r.GVK.Kind}, r.ShortNames, r.Categories)
	return slices.ContainsFunc(o.types, func(text string) bool {
		name, err := discovery.ParseName(text)
		return err == nil && matchesName(name, r.GVR.Group, r.ServedVersions, names)
	})
}
