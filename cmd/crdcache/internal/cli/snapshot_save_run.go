package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/capture"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/snapshot"
)

// stdoutPath stands for standard output.
const stdoutPath = "-"

// replaceable refuses a path at which there is something other than a snapshot: it may be a type in the place of the file.
func replaceable(path string) error {
	if path == stdoutPath {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return exit.Usagef("%s is no file that can be replaced; '-' is standard output", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, len(snapshot.Magic()))
	if n, err := io.ReadFull(file, head); n > 0 && (err != nil || !bytes.Equal(head, snapshot.Magic())) {
		return exit.Usagef("%s is there, and is no snapshot: name another file, or remove it", path)
	}
	return nil
}

// run saves the types.
func (o *snapshotSaveOptions) run(ctx context.Context) error {
	saver, unresolved, err := o.saver(ctx)
	if err != nil {
		return err
	}
	about := snapshot.About{Tool: "crdcache " + buildInfo().Version}
	if o.path == stdoutPath {
		saver.Writer = snapshot.NewWriter(o.Out, about)
	} else if saver.Writer, err = snapshot.Create(o.path, about); err != nil {
		return err
	}
	defer saver.Writer.Abort()
	if saver.OneByOne = o.target.Offline(); saver.OneByOne {
		saver.Writer.SetAbout(func(about *snapshot.About) { about.Created = o.target.Taken() })
	}
	done := o.target.Progress(saver.Progress)
	failed, err := saver.Save(ctx)
	done()
	if failed {
		return errors.Join(unresolved, err)
	}
	contents := saver.Writer.Contents()
	if failed := saver.Writer.Commit(); failed != nil {
		return errors.Join(unresolved, err, failed)
	}
	o.tell(contents)
	return errors.Join(unresolved, err)
}

// saver finds the types. What cannot be found comes as unresolved, and does not keep the others from being saved.
func (o *snapshotSaveOptions) saver(ctx context.Context) (saver *capture.Saver, unresolved, err error) {
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	catalog, err := o.target.Catalog(waiting)
	if err != nil {
		return nil, nil, err
	}
	saver = &capture.Saver{Known: catalog.Resources(), Warn: o.warn}
	for _, group := range catalog.Unknown() {
		o.warn(fmt.Sprintf("%v: types of this group may be missing", group))
	}
	if len(o.types) > 0 {
		if saver.Types, unresolved = o.target.Resolve(waiting, o.types); len(saver.Types) == 0 {
			return nil, nil, unresolved
		}
	} else {
		saver.Types = slices.DeleteFunc(slices.Clone(saver.Known), func(r discovery.Resource) bool { return !r.Preferred || !r.Watchable() })
		for _, r := range saver.Types {
			o.target.Use(r.GVR.GroupResource())
		}
		unresolved = o.target.Err()
	}
	if err := o.redact(waiting, saver); err != nil {
		return nil, nil, err
	}
	saver.Reader, err = readerOf(o.target, o.target.Namespace)
	return saver, unresolved, err
}

// readerOf reads lists of a server.
func readerOf(target *session.Target, namespace string) (capture.Reader, error) {
	client, err := target.PlainClient()
	return capture.Reader{Client: client, Namespace: namespace}, err
}

// redact finds the types of which something is left out. A type that is not there may be misspelt, and what was to be left
// out would be saved.
func (o *snapshotSaveOptions) redact(ctx context.Context, saver *capture.Saver) error {
	for _, what := range o.redactions {
		found, err := o.target.Resolve(ctx, []string{what.Type})
		if err != nil && what.Type != capture.Secrets.Type {
			return exit.Usagef("--redact-config: %v", err)
		}
		var types []schema.GroupResource
		for _, r := range found {
			types = append(types, r.GVR.GroupResource())
		}
		saver.Redactor.Add(what, types...)
	}
	return nil
}

var secrets = schema.GroupResource{Resource: "secrets"}

// tell says what was saved.
func (o *snapshotSaveOptions) tell(contents snapshot.Contents) {
	types, objects := 0, 0
	for _, t := range contents.Types {
		if t.Missing == nil {
			types++
			objects += t.Objects
		}
		if t.GVR().GroupResource() == secrets && t.Objects > 0 && len(o.redactions) == 0 {
			o.warn(fmt.Sprintf("the file has the data of %d Secrets; --redact leaves it out", t.Objects))
		}
	}
	fmt.Fprintf(o.ErrOut, "saved %d objects of %d types in %s\n", objects, types, o.path)
}
