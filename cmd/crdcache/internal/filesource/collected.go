package filesource

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// note adds the type of an empty list, or of objects that a tool could not read.
func (l *loader) note(f *manifest.File, p manifest.Position, n *manifest.Note) {
	if n.Uncollected == "" {
		gv, err := schema.ParseGroupVersion(n.APIVersion)
		if err == nil && n.Kind != "" {
			entry := manifest.Entry{Position: p}
			l.emptyLists = append(l.emptyLists, pendingObject{f, entry, gv.WithKind(n.Kind), true})
			l.show(gv.WithKind(n.Kind), f, p, asList)
		}
		return
	}
	gr := schema.ParseGroupResource(n.Uncollected) // a definition has the name of its type
	if t, ok := naming.FindBuiltinByName(n.Uncollected); ok {
		gr = schema.GroupResource{Group: t.Group, Resource: t.Plural}
		gvk := schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
		l.emptyLists = append(l.emptyLists, pendingObject{f, manifest.Entry{Position: p}, gvk, true})
		l.show(gvk, f, p, asType)
	} else if gr.Group == "" { // the name of types of any group, or of none
		gr = schema.GroupResource{Group: anyGroup, Resource: strings.ReplaceAll(gr.Resource, "-", "")}
		l.reader.Problem(f, p, true, n)
	}
	l.addReason(gr, f, f.Location(p)+": "+n.Reason)
}

// fileReason is why a file shows that objects are unknown.
type fileReason struct {
	file      *manifest.File
	readCount int
	text      string
}

func (l *loader) addReason(gr schema.GroupResource, f *manifest.File, text string) {
	l.uncollected[gr] = append(l.uncollected[gr], fileReason{f, f.ReadCount, text})
}

// dropReasons drops the reasons and kinds of deleted files, and of the earlier content of others.
func (l *loader) dropReasons() {
	for _, all := range l.shown {
		maps.DeleteFunc(all, func(in shownIn, readCount int) bool { return l.isGone(in.file, readCount) })
	}
	for key, files := range l.deletions {
		before := len(files)
		if maps.DeleteFunc(files, l.isGone); len(files) < before {
			l.rereadCopies(key)
		}
	}
	for gr, reasons := range l.uncollected {
		l.uncollected[gr] = slices.DeleteFunc(reasons, func(r fileReason) bool {
			return l.deletedFiles[r.file] || r.readCount != r.file.ReadCount
		})
	}
}

// anyGroup is the group of custom resources of which only the name is known.
const anyGroup = "*"

// reasonOf returns why not all objects of a type are known, or "". hasObjects is set if some are.
func (l *loader) reasonOf(gr schema.GroupResource, hasObjects bool) string {
	var texts []string
	for _, of := range []schema.GroupResource{gr, {Group: anyGroup, Resource: gr.Resource}} {
		textOf := func(r fileReason) string { return r.text }
		texts = naming.AppendMissing(texts, naming.Texts(l.uncollected[of], textOf)...)
	}
	switch reason := cmp.Or(strings.Join(texts, "; "), l.reasonOfBundles(gr)); {
	case reason == "":
		return ""
	case hasObjects:
		return fmt.Sprintf("not all %s were collected: %s", gr, reason)
	default:
		return fmt.Sprintf("%s were not collected: %s", strings.TrimSuffix(gr.String(), "."+anyGroup), reason)
	}
}

// shownIn is a version of a kind in a file. That of a definition is empty.
type shownIn struct {
	bundle
	file    *manifest.File
	version string
}

// bundle is a source that shows a kind: an archive, or a path of Options.
type bundle struct {
	source string
	as     shownAs
}

type shownAs int

const (
	asObject shownAs = iota
	asList
	asType // that a bundle defines or could not collect, which shows no objects
)

func (l *loader) sourceOf(f *manifest.File, p manifest.Position) string {
	if p.Member != "" || f.NamedAsArgument {
		return f.Name()
	}
	return l.paths[f.Argument]
}

func (l *loader) show(gvk schema.GroupVersionKind, f *manifest.File, p manifest.Position, as shownAs) {
	gk := gvk.GroupKind()
	if l.shown[gk] == nil {
		l.shown[gk] = map[shownIn]int{}
	}
	l.shown[gk][shownIn{bundle{l.sourceOf(f, p), as}, f, gvk.Version}] = f.ReadCount
}

// removeTypes removes the types without definition, and the versions, that no file shows any more, as if no
// file had shown them.
func (l *loader) removeTypes() {
	for gk, k := range l.kinds {
		shown := map[string]bool{}
		for in := range l.shown[gk] {
			shown[in.version] = true
		}
		versions := slices.DeleteFunc(slices.Clone(k.typ.Versions),
			func(v readapi.Version) bool { return !shown[v.Name] })
		switch {
		case k.definitionName != "":
		case len(versions) == 0:
			l.removeKind(k)
			l.storage.RemoveType(k.typ.GroupResource())
			l.typesChanged = true
		case len(versions) < len(k.typ.Versions):
			_ = l.setVersions(k, versions) // the storage accepted each
		}
	}
}

// reasonOfBundles returns why bundles do not show all objects of a type, or "". Each bundle with the
// definition must have objects, or another source a list. Single objects do not complete other sources.
func (l *loader) reasonOfBundles(gr schema.GroupResource) string {
	c := l.storage.Collection(gr)
	if c == nil {
		return ""
	}
	reason, typ := "", c.Type()
	bundles := map[bundle]bool{}
	for in := range l.shown[typ.GroupKind()] {
		bundles[in.bundle] = true
	}
	for in := range bundles {
		shows := func(as shownAs) bool { return bundles[bundle{in.source, as}] }
		switch {
		case in.as == asList && !shows(asType):
			return ""
		case in.as == asType && !shows(asObject) && !shows(asList):
			reason = max(reason, in.source+" has their definition, and no objects")
		}
	}
	return reason
}

// ReasonNotCollected is the reason of the error for a type of which no object was collected.
const ReasonNotCollected metav1.StatusReason = "NotCollected"

// refuse returns an error for reads of a type of which no object was collected.
func (s *Source) refuse(gr schema.GroupResource, hasObjects bool) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	reason := s.reading.loader.reasonOf(gr, false)
	switch {
	case s.reading.loader.omitted[gr]:
		return apierrors.NewForbidden(gr, "", errors.New("the command named other types, so its objects are not kept"))
	case reason == "" || hasObjects:
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusForbidden, Reason: ReasonNotCollected, Message: reason}}
}

// deleteRecorded removes an object that a recording shows as deleted. A deleted definition makes its type
// incomplete, because other files can have its objects.
func (l *loader) deleteRecorded(f *manifest.File, e manifest.Entry) {
	gv, _ := schema.ParseGroupVersion(e.APIVersion) // the recorded object had the same
	if gv.Group == crdGroupKind.Group {
		reason := fmt.Sprintf("%s: the CustomResourceDefinition %s was deleted", f.Location(e.Position), e.Name)
		l.addReason(schema.ParseGroupResource(e.Name), f, reason)
		l.addReason(crd.GVR.GroupResource(), f, reason)
		return
	}
	matches := func(gk schema.GroupKind, plural string) bool {
		return gk.Group == gv.Group && (gk.Kind == e.Kind || e.Kind == "" && plural == e.Resource)
	}
	l.objectsOfUnknownKinds = slices.DeleteFunc(l.objectsOfUnknownKinds, func(p pendingObject) bool {
		isDeleted := matches(p.gvk.GroupKind(), naming.GuessPlural(p.gvk.Kind)) &&
			p.Namespace == e.Namespace && p.Name == e.Name
		if isDeleted {
			l.emptyLists = append(l.emptyLists, p) // the type remains
			l.shadow(l.recordDeletion(f, e, p.gvk.GroupKind()), p.file)
		}
		return isDeleted
	})
	for _, k := range l.kinds {
		if !matches(k.GroupKind, k.typ.Names.Plural) {
			continue
		}
		deleted := l.recordDeletion(f, e, k.GroupKind)
		for _, v := range k.typ.Versions {
			key := objectKey{k.GroupKind, e.Namespace, e.Name, v.Name}
			if o := l.origins[key]; o != nil && o.file.Compare(f) <= 0 {
				for _, unused := range append(l.shadowed[key], o.file) {
					l.shadow(deleted, unused)
				}
				delete(l.shadowed, key)
				delete(l.origins, key)
				l.storage.DeleteInVersion(k.typ.GroupResource(), key.namespace, key.name, key.version)
			}
		}
	}
}

// recordDeletion returns the key of the deleted object in any version.
func (l *loader) recordDeletion(f *manifest.File, e manifest.Entry, gk schema.GroupKind) objectKey {
	deleted := objectKey{gk, e.Namespace, e.Name, ""}
	if l.deletions[deleted] == nil {
		l.deletions[deleted] = map[*manifest.File]int{}
	}
	l.deletions[deleted][f] = f.ReadCount
	return deleted
}
