package snapshots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// instanceFields differ between the objects of two clusters even if both were created from one manifest. An
// object that was never in a cluster has none of them.
var instanceFields = []string{".metadata.uid", ".metadata.creationTimestamp", ".metadata.ownerReferences[*].uid"}

// ignoredFields returns the fields of --ignore, and fields that always differ between clusters.
func (o *diffVerb) ignoredFields() []string {
	if slices.ContainsFunc(o.sources[:], func(s diffSource) bool { return s.target.Cluster != "" }) {
		return slices.Concat(o.ignore, instanceFields)
	}
	return o.ignore
}

// open opens files first, because they determine the types that are read from a cluster.
func (o *diffVerb) open(ctx context.Context, comparison *snapshotComparison) (err error) {
	for _, files := range []bool{true, false} {
		for i, source := range o.sources {
			if source.target.ReadsFiles() != files {
				continue
			}
			if comparison.files[i] = source.target.Snapshot(); comparison.files[i] == nil {
				comparison.files[i], err = o.read(ctx, source, comparison.files[1-i])
			} else {
				err = errors.Join(comparison.files[i].Contents().Damage...)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *snapshotComparison) close() {
	for _, f := range c.files {
		if f != nil {
			_ = f.Close() // only read
		}
	}
}

// read saves the current state of a cluster, or the objects of files, in memory. Of a cluster it reads the
// types of the other source, or all types if other is nil. Of files it reads all types, each in the version
// of the other source.
func (o *diffVerb) read(ctx context.Context, source diffSource,
	other *snapshot.File) (*snapshot.File, error) {
	target := source.target
	if err := target.ContextErr(); err != nil {
		return nil, err
	}
	limitedCtx, cancel := target.WithTimeout(ctx)
	defer cancel()
	catalog, err := target.Catalog(limitedCtx)
	if err != nil {
		return nil, err
	}
	saver := &snapshotSaver{target: target, allTypes: catalog.Resources(), namespace: o.namespace,
		unknownGroups: catalog.FailedGroupVersions()}
	if other != nil {
		saver.namespace = cmp.Or(other.Contents().Namespace, o.namespace)
	}
	saver.types = o.typesToRead(saver.allTypes, target, other)
	target.SelectVersions(false)
	var buffer bytes.Buffer
	saver.writer = snapshot.NewWriter(&buffer, snapshot.Origin{})
	if unusable, err := saver.save(ctx); unusable {
		return nil, err
	}
	// An unreadable type is recorded as missing, with the reason.
	if err := saver.writer.Commit(); err != nil {
		return nil, err
	}
	return snapshot.NewFile(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()))
}

// typesToRead returns the named types. Without names, it returns the types of the other source, in the same
// version if it is served, or all types except events if the other source is a complete snapshot or nil.
func (o *diffVerb) typesToRead(all []discovery.Resource, target *session.Target,
	other *snapshot.File) []discovery.Resource {
	otherHasAll := other == nil || target.ReadsFiles() ||
		!slices.ContainsFunc(o.sources[:], diffSource.isManifests) &&
			!slices.ContainsFunc(other.Contents().Types, func(s snapshot.SavedType) bool {
				return s.NotRequested && !session.IsEvents(s.GVR().GroupResource())
			})
	var types []discovery.Resource
	for _, r := range all {
		isNamed := o.isNamed(r)
		var saved *snapshot.Objects
		if other != nil {
			saved = other.Objects(r.GVR.GroupResource())
		}
		switch {
		case !r.HasVerbs("list"), !isNamed && (len(o.types) > 0 || session.IsEvents(r.GVR.GroupResource())):
		case saved != nil && saved.Type().Missing == nil:
			version := saved.Type().Version
			if version == r.GVR.Version || r.Preferred && !slices.Contains(r.ServedVersions, version) {
				types = append(types, r)
			}
		case r.Preferred && saved == nil && (otherHasAll || isNamed):
			types = append(types, r)
		}
	}
	return types
}

func (o *diffVerb) isNamed(r discovery.Resource) bool {
	names := slices.Concat([]string{r.GVR.Resource, r.Singular, r.GVK.Kind}, r.ShortNames, r.Categories)
	return slices.ContainsFunc(o.types, func(text string) bool {
		name, err := discovery.ParseName(text)
		return err == nil && session.MatchesName(name, r.GVR.Group, r.ServedVersions, names)
	})
}
