package resources

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// run learns what the server has and prints it. Its error joins those of the names that match nothing.
func (o *options) run(ctx context.Context) error {
	snapshot, err := o.look(ctx)
	if err != nil {
		return err
	}
	types, unresolved := o.choose(snapshot)
	records := make([]record, 0, len(types))
	for _, t := range types {
		if !o.custom || t.Source == discovery.FromCRD {
			records = append(records, newRecord(t, o.indexes(t)))
		}
	}
	return errors.Join(unresolved, o.print(records))
}

// look runs a tracker until it has a complete picture.
func (o *options) look(ctx context.Context) (*discovery.Snapshot, error) {
	tracker, err := discovery.NewTracker(o.target.Config, discovery.TrackerOptions{})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ended by stop
		defer close(ended)
		_ = tracker.Run(running) // it fails only when it has run before
	}()
	defer func() {
		stop()
		<-ended
	}()
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	if err := tracker.WaitForSync(waiting); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, o.target.Explain(waiting, err)
	}
	status := tracker.Status()
	if status.Mode == discovery.Polling {
		fmt.Fprintf(o.ErrOut, "warning: the CustomResourceDefinitions may not be read, so that only what discovery tells is listed\n")
	}
	for _, failed := range status.Unknown {
		fmt.Fprintf(o.ErrOut, "warning: %s may have types that could not be discovered: %v\n", failed.GroupVersion, failed.Err)
	}
	return tracker.Snapshot(), nil
}

// choose gives the types that were named, or all.
func (o *options) choose(snapshot *discovery.Snapshot) ([]discovery.Type, error) {
	if len(o.types) == 0 {
		return snapshot.Types(), nil
	}
	var errs []error
	wanted := map[schema.GroupResource]bool{}
	for _, name := range o.types {
		resolution, err := snapshot.Catalog().Resolve(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range resolution.Resources {
			wanted[r.GVR.GroupResource()] = true
		}
		for _, skipped := range resolution.Skipped {
			wanted[skipped.GVR.GroupResource()] = true
		}
	}
	types := slices.DeleteFunc(snapshot.Types(), func(t discovery.Type) bool { return !wanted[t.GroupResource] })
	return types, errors.Join(errs...)
}

// indexes names the indexes of the config that apply to a type.
func (o *options) indexes(t discovery.Type) []string {
	if o.config == nil {
		return nil
	}
	names := []string{}
	for _, r := range o.config.Resources {
		if !applies(r.Match, t) {
			continue
		}
		for _, index := range r.Indexes {
			names = append(names, r.Name+"/"+index.Name)
		}
	}
	return names
}

// applies reports whether a match of a config means the type in one of its versions.
func applies(m indexers.Match, t discovery.Type) bool {
	if !matches(m.Group, t.GroupResource.Group) {
		return false
	}
	if m.Version != "" && !slices.Contains(t.ServedVersions(), m.Version) {
		return false
	}
	if m.Kind != "" {
		return m.Kind == t.Kind
	}
	return matches(m.Resource, t.GroupResource.Resource)
}

// matches compares with a pattern in which * stands for any text.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
