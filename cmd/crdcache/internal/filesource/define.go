package filesource

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/readapi"
)

// definitions is the kind CustomResourceDefinition.
var definitions = &kind{
	GroupKind: definitionKind, typ: readapi.Type{Group: crd.GVR.Group,
		Names: crd.Names{Plural: crd.GVR.Resource}},
	definitionName: "built in",
}

// addDefinition adds a CustomResourceDefinition.
func (l *loader) addDefinition(f *manifest.File, e manifest.Entry, u *unstructured.Unstructured) {
	if u.GroupVersionKind().Version != crd.GVR.Version {
		l.reader.Problem(f, e.Position, false, errors.New("CustomResourceDefinition "+u.GetName()+
			": only apiextensions.k8s.io/v1 is supported"))
		return
	}
	d, err := crd.FromUnstructured(u.Object)
	if err != nil {
		l.reader.Problem(f, e.Position, false, err)
		return
	}
	gk := schema.GroupKind{Group: d.Group, Kind: d.Names.Kind}
	old := l.kinds[gk]
	fits := old != nil && old.inferred && old.typ.GroupResource() == d.GroupResource() &&
		old.typ.Namespaced == d.Namespaced &&
		!slices.ContainsFunc(old.typ.Versions,
			func(v readapi.Version) bool { return !slices.Contains(d.ServedVersions(), v.Name) })
	if old != nil && old.inferred && !fits {
		// The CRD corrects the inferred scope, name and versions.
		l.removeKind(old)
		l.storage.RemoveType(old.typ.GroupResource())
	}
	l.putObject(f, e, definitions, u)
	if _, ok := l.origins[object{definitionKind, "", u.GetName()}]; !ok {
		return
	}
	l.markMismatchedFiles(gk)
	t, ok := systemType(l.storage, gk)
	if !ok {
		delete(l.kinds, gk)
		return // the definition is not established
	}
	if old := l.kinds[gk]; old != nil && !fits && (old.typ.Namespaced != t.Namespaced ||
		old.definitionName == "") {
		l.removeKind(old) // the storage deleted its objects
	}
	if t.Converted && len(t.Versions) > 1 {
		l.reader.Problem(f, e.Position, true, errors.New("the versions of "+t.GroupResource().String()+
			" are converted by a webhook, which is not called: each object can be read only in its own version"))
	}
	l.kinds[gk] = &kind{GroupKind: gk, typ: t, definitionName: u.GetName()}
}

// removeKind removes a kind and its objects, and marks their files to be read again.
func (l *loader) removeKind(k *kind) {
	delete(l.kinds, k.GroupKind)
	l.markMismatchedFiles(k.GroupKind)
	for o, c := range l.origins {
		if o.GroupKind == k.GroupKind {
			delete(l.origins, o)
			l.filesToReread[c.file.Path] = true
			if c.file.Path == manifest.Stdin {
				l.reader.Problem(c.file, c.Position, false,
					fmt.Errorf("%s is no longer shown: its type changed, and standard input cannot be read again; restart the command", o))
			}
		}
	}
	for o, files := range l.shadowed {
		if o.GroupKind == k.GroupKind {
			delete(l.shadowed, o)
			for _, f := range files {
				l.filesToReread[f.Path] = true
			}
		}
	}
}

// remove deletes an object that is no longer in its file. If another file has it, that file is read again.
func (l *loader) remove(o object) {
	delete(l.origins, o)
	for _, f := range l.shadowed[o] {
		l.filesToReread[f.Path] = true
	}
	delete(l.shadowed, o)
	if o.GroupKind == definitionKind {
		l.storage.Delete(definitions.typ.GroupResource(), "", o.name)
		for _, k := range l.kinds {
			if k.definitionName == o.name {
				l.removeKind(k) // its remaining objects now have no definition
			}
		}
		return
	}
	if k := l.kinds[o.GroupKind]; k != nil {
		l.storage.Delete(k.typ.GroupResource(), o.namespace, o.name)
	}
}

func isDefinition(e manifest.Entry) bool {
	return e.Kind == definitionKind.Kind
}
