package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/capture"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/snapshot"
)

// snapshotDifference is what -o json gives.
type snapshotDifference struct {
	Before string           `json:"before"`
	After  string           `json:"after"`
	Types  []typeDifference `json:"types"`
	// NotCompared are types that one of the two does not have.
	NotCompared []notCompared `json:"notCompared,omitempty"`
}

// notCompared is a type that could not be compared.
type notCompared struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// failed says that it is missing although it was asked for.
	failed bool
}

// run compares.
func (o *snapshotDiffOptions) run(ctx context.Context) error {
	different, err := o.compare(ctx)
	switch {
	case err != nil:
		return exit.Trouble(err)
	case different:
		return exit.ErrDifferent
	}
	return nil
}

func (o *snapshotDiffOptions) compare(ctx context.Context) (different bool, err error) {
	c := &comparison{ignored: o.ignored, only: o.namespace}
	if c.before, err = snapshot.Open(o.before); err != nil {
		return false, err
	}
	defer c.before.Close()
	if o.target != nil {
		c.after, err = o.live(ctx, c.before)
	} else {
		c.after, err = snapshot.Open(o.after)
	}
	if err != nil {
		return false, err
	}
	defer c.after.Close()
	if err := o.checkNamespace(c); err != nil {
		return false, err
	}
	types, missing, err := o.plan(c)
	if err != nil {
		return false, err
	}
	all := snapshotDifference{Before: o.before, After: o.after, Types: []typeDifference{}, NotCompared: missing}
	for _, gr := range types {
		one, err := c.typeOf(ctx, gr)
		if err != nil {
			return false, err
		}
		if !one.empty() {
			all.Types = append(all.Types, one)
		}
	}
	if err := o.print(all); err != nil {
		return false, err
	}
	var failed []error
	for _, m := range missing {
		if m.failed {
			failed = append(failed, fmt.Errorf("%s is not compared: %s", m.Type, m.Message))
		}
	}
	return len(all.Types) > 0, errors.Join(failed...)
}

// checkNamespace makes a namespace that one of the snapshots has alone the only one that is compared.
func (o *snapshotDiffOptions) checkNamespace(c *comparison) error {
	paths := []string{o.before, o.after}
	for i, f := range []*snapshot.File{c.before, c.after} {
		switch has := f.Contents().Namespace; {
		case has == "":
		case c.only == "":
			c.only = has
		case c.only != has:
			return exit.Usagef("%s has the namespace %s alone, and nothing of %s", paths[i], has, c.only)
		}
	}
	return nil
}

// events expire after an hour and are no part of the state of a cluster. Two groups serve them.
var events = map[schema.GroupResource]bool{{Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true}

// plan says which types are compared, and which cannot be.
func (o *snapshotDiffOptions) plan(c *comparison) (types []schema.GroupResource, missing []notCompared, err error) {
	wanted, err := o.wanted(c)
	if err != nil {
		return nil, nil, err
	}
	for _, gr := range savedTypes(c.before, c.after) {
		if wanted != nil && !wanted[gr] || wanted == nil && events[gr] {
			continue
		}
		lacking := false
		for _, f := range []*snapshot.File{c.before, c.after} {
			if objects := f.Objects(gr); objects != nil && objects.Saved().Missing != nil {
				saved := objects.Saved()
				missing = append(missing, notCompared{gr.String(), saved.Missing.Message, !saved.Unasked || wanted != nil})
				lacking = true
				break
			}
		}
		if !lacking {
			types = append(types, gr)
		}
	}
	return types, missing, nil
}

// savedTypes are the types whose objects one of the files has, or should have, in order.
func savedTypes(files ...*snapshot.File) []schema.GroupResource {
	var all []schema.GroupResource
	for _, f := range files {
		for _, saved := range f.Contents().Types {
			gr := saved.GVR().GroupResource()
			if !saved.Unasked && !slices.Contains(all, gr) {
				all = append(all, gr)
			}
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupResource) int {
		return bytes.Compare([]byte(a.Group+"/"+a.Resource), []byte(b.Group+"/"+b.Resource))
	})
	return all
}

// wanted are the types that were named, by names that one of the snapshots knows; nil: all.
func (o *snapshotDiffOptions) wanted(c *comparison) (map[schema.GroupResource]bool, error) {
	if len(o.types) == 0 {
		return nil, nil
	}
	wanted := map[schema.GroupResource]bool{}
	for _, text := range o.types {
		name, err := discovery.ParseName(text)
		if err != nil {
			return nil, exit.Usagef("%v", err)
		}
		found := false
		for _, f := range []*snapshot.File{c.before, c.after} {
			for _, saved := range f.Contents().Types {
				names := slices.Concat([]string{saved.Resource, saved.Singular, saved.Kind}, saved.ShortNames, saved.Categories)
				fits := func(r discovery.Reading) bool {
					return r.Fits(saved.Group, append(saved.Versions, saved.Version), names)
				}
				if slices.ContainsFunc(name.Readings, fits) {
					wanted[saved.GVR().GroupResource()], found = true, true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("neither %s nor %s has a type %q", o.before, o.after, text)
		}
	}
	return wanted, nil
}

// live saves in memory what the cluster has now of what a snapshot has: all types if that has all.
func (o *snapshotDiffOptions) live(ctx context.Context, before *snapshot.File) (*snapshot.File, error) {
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	catalog, err := o.target.Catalog(waiting)
	if err != nil {
		return nil, err
	}
	contents := before.Contents()
	saver := &capture.Saver{Known: catalog.Resources(), Warn: o.warn}
	all := !slices.ContainsFunc(contents.Types, func(s snapshot.Saved) bool { return s.Unasked })
	for _, known := range saver.Known {
		of := before.Objects(known.GVR.GroupResource())
		switch {
		case !known.Watchable():
		case of == nil && all && known.Preferred, of != nil && of.Saved().Missing == nil && of.Saved().Version == known.GVR.Version:
			saver.Types = append(saver.Types, known)
		}
	}
	if saver.Reader, err = readerOf(o.target, cmp.Or(contents.Namespace, o.namespace)); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	saver.Writer = snapshot.NewWriter(&text, snapshot.About{})
	done := o.target.Progress(saver.Progress)
	failed, err := saver.Save(ctx)
	done()
	if failed {
		return nil, err
	}
	// A type that could not be read is missing in what was saved, with the reason.
	if err := saver.Writer.Commit(); err != nil {
		return nil, err
	}
	return snapshot.NewFile(bytes.NewReader(text.Bytes()), int64(text.Len()))
}
