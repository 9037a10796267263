package filesource

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/serving/readapi"
)

func (l *loader) addDefinition(f *manifest.File, e manifest.Entry, u *unstructured.Unstructured) {
	if u.GroupVersionKind().Version != crd.GVR.Version {
		l.reader.Problem(f, e.Position, false, errors.New("CustomResourceDefinition "+u.GetName()+
			": only apiextensions.k8s.io/v1 is supported"))
		return
	}
	definition, err := crd.FromUnstructured(u.Object)
	if spec, _ := u.Object["spec"].(map[string]any); spec["group"] == nil && spec["names"] == nil &&
		spec["versions"] == nil { // kubebuilder generates such files next to the CRDs
		l.reader.Problem(f, e.Position, true, errors.New("ignored: a patch of a CustomResourceDefinition, for kustomize"))
		return
	}
	if err != nil {
		l.reader.Problem(f, e.Position, false, err)
		return
	}
	gk := schema.GroupKind{Group: definition.Group, Kind: definition.Names.Kind}
	if k := l.kinds[gk]; k != nil && k.definitionName != u.GetName() {
		key := objectKey{crdGroupKind, "", k.definitionName, crd.GVR.Version}
		if o := l.origins[key]; o != nil && l.isGone(o.file, o.readCount) {
			l.removeObject(key) // it has the kind, under another name
		}
	}
	previous := l.kinds[gk]
	dropsVersion := previous != nil && slices.ContainsFunc(previous.typ.Versions,
		func(v readapi.Version) bool { return !slices.Contains(definition.ServedVersions(), v.Name) })
	keepsObjects := previous != nil && previous.inferred && !dropsVersion &&
		previous.typ.GroupResource() == definition.GroupResource() &&
		previous.typ.Namespaced == definition.Namespaced
	if previous != nil && previous.inferred && !keepsObjects {
		// The CRD corrects the inferred scope, name and versions.
		l.removeKind(previous)
		l.storage.RemoveType(previous.typ.GroupResource())
	}
	k, err := l.kindOf(u.GroupVersionKind())
	if err != nil {
		l.reportMismatch(f, e.Position, crdGroupKind, err)
		return
	}
	l.putObject(f, e, k, u)
	if _, ok := l.origins[objectKey{crdGroupKind, "", u.GetName(), crd.GVR.Version}]; !ok {
		l.markMismatched(gk, f) // another definition can have the kind
		return
	}
	l.markMismatchedFiles(gk)
	defined := l.storage.Collection(definition.GroupResource())
	if defined == nil {
		delete(l.kinds, gk)
		return // the definition is not established
	}
	served := defined.Type()
	if previous := l.kinds[gk]; previous != nil && !keepsObjects &&
		(previous.typ.Namespaced != served.Namespaced || previous.definitionName == "") {
		l.removeKind(previous) // the storage deleted its objects
	}
	for key, from := range l.origins {
		if dropsVersion && key.GroupKind == gk && served.Version(key.version) == nil {
			l.removeObject(key)
			l.filesToReread[from.file.Path] = true // which reports it
		}
	}
	l.kinds[gk] = &kind{GroupKind: gk, typ: served, definitionName: u.GetName()}
	if e.Recorded || manifest.IsSortedByType(f.Path+"/"+e.Member) {
		l.show(gk.WithVersion(""), f, e.Position, asType)
	}
}

// removeKind removes a kind and its objects. It marks their files to be read again.
func (l *loader) removeKind(k *kind) {
	delete(l.kinds, k.GroupKind)
	l.markMismatchedFiles(k.GroupKind)
	for key, from := range l.origins {
		if key.GroupKind == k.GroupKind {
			delete(l.origins, key)
			l.filesToReread[from.file.Path] = true
			if from.file.Path == manifest.Stdin {
				l.reader.Problem(from.file, from.Position, false,
					fmt.Errorf("%s is no longer shown: its type changed, and standard input cannot be read again; restart the command", key))
			}
		}
	}
	for key, files := range l.shadowed {
		if key.GroupKind == k.GroupKind {
			delete(l.shadowed, key)
			for _, f := range files {
				l.filesToReread[f.Path] = true
			}
		}
	}
}

// removeObject deletes an object that is no longer in its file. It marks files with a copy to be read again.
func (l *loader) removeObject(key objectKey) {
	delete(l.origins, key)
	l.rereadCopies(key)
	if key.GroupKind == crdGroupKind {
		l.storage.Delete(crd.GVR.GroupResource(), "", key.name)
		for _, k := range l.kinds {
			if k.definitionName == key.name {
				l.removeKind(k) // its remaining objects now have no definition
			}
		}
		return
	}
	if k := l.kinds[key.GroupKind]; k != nil {
		l.storage.DeleteInVersion(k.typ.GroupResource(), key.namespace, key.name, key.version)
	}
}
