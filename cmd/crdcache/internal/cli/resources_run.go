package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
)

// run learns what the server has and prints it. Its error joins those of the names that match nothing.
func (o *resourcesOptions) run(ctx context.Context) error {
	snapshot, err := o.look(ctx)
	if err != nil {
		return err
	}
	types, unresolved := o.choose(snapshot)
	records := make([]typeRecord, 0, len(types))
	for _, t := range types {
		if !o.custom || t.Source == discovery.FromCRD {
			o.target.Use(t.GroupResource)
			records = append(records, newTypeRecord(t, o.config.ForType(t)))
		}
	}
	return errors.Join(o.target.Err(), unresolved, o.print(records))
}

// look runs a tracker until it has a complete picture.
func (o *resourcesOptions) look(ctx context.Context) (*discovery.Snapshot, error) {
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	// A tracker asks again until it is answered; a server that is not there, or refuses, is told of at once.
	if _, err := o.target.Catalog(waiting); err != nil {
		return nil, err
	}
	tracker, err := o.target.Tracker()
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
func (o *resourcesOptions) choose(snapshot *discovery.Snapshot) ([]discovery.Type, error) {
	types := snapshot.Types()
	if len(o.types) == 0 {
		return types, nil
	}
	var errs []error
	wanted := map[schema.GroupResource]bool{}
	for _, name := range o.types {
		found := addUnserved(wanted, types, name)
		resolution, err := snapshot.Catalog().Resolve(name)
		if err != nil && !found {
			errs = append(errs, err)
		}
		for _, r := range resolution.Resources {
			wanted[r.GVR.GroupResource()] = true
		}
		for _, skipped := range resolution.Skipped {
			wanted[skipped.GVR.GroupResource()] = true
		}
	}
	types = slices.DeleteFunc(types, func(t discovery.Type) bool { return !wanted[t.GroupResource] })
	return types, errors.Join(errs...)
}

// addUnserved adds the types that a name fits and that the server does not serve, which a catalog knows nothing of:
// what is wrong with a CRD is what one wants to see here. It reports whether there are any.
func addUnserved(wanted map[schema.GroupResource]bool, types []discovery.Type, text string) bool {
	name, err := discovery.ParseName(text)
	if err != nil {
		return false // resolving says so
	}
	found := false
	for _, t := range types {
		if t.Established && len(t.ServedVersions()) > 0 {
			continue
		}
		versions := make([]string, len(t.Versions))
		for i, v := range t.Versions {
			versions[i] = v.Name
		}
		names := slices.Concat([]string{t.GroupResource.Resource, t.Singular, t.Kind}, t.ShortNames, t.Categories)
		if slices.ContainsFunc(name.Readings, func(r discovery.Reading) bool { return r.Fits(t.GroupResource.Group, versions, names) }) {
			wanted[t.GroupResource], found = true, true
		}
	}
	return found
}
