package filesource

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/readapi"
)

// loader loads the content of files into a storage and records the origin of each object. It is not safe for
// concurrent use.
type loader struct {
	storage *apiserver.Storage
	reader  *manifest.Reader

	kinds map[schema.GroupKind]*kind
	// origins has all objects of the storage.
	origins map[object]origin
	// shadowed has the files with an unused copy of an object.
	shadowed map[object][]*manifest.File
	// mismatchedFiles has the paths of files with objects that do not match the type of their kind. If the
	// type changes, these files are read again.
	mismatchedFiles       map[schema.GroupKind]map[string]bool
	objectsOfUnknownKinds []pendingObject
	// filesToReread has the paths of files to read again because types changed.
	filesToReread map[string]bool
	// unreportedTypes are the inferred types that no warning has reported yet.
	unreportedTypes []inferredType
	usedTypes       map[schema.GroupResource]bool // types that are read
	// isServed is set when the storage is served and changes must be sent to watches.
	isServed     bool
	typesChanged bool
}

// kind is a kind with a type in the storage.
type kind struct {
	schema.GroupKind
	typ            readapi.Type
	definitionName string // name of the CRD, or empty
	inferred       bool
}

// object identifies an object.
type object struct {
	schema.GroupKind
	namespace, name string
}

func (o object) String() string {
	if o.namespace == "" {
		return o.Kind + " " + o.name
	}
	return o.Kind + " " + o.namespace + "/" + o.name
}

// origin is the file and position of an object.
type origin struct {
	file *manifest.File
	manifest.Position
	readCount int // value of file.Reads when it was read
}

type pendingObject struct {
	file *manifest.File
	manifest.Entry
	gvk        schema.GroupVersionKind
	namespaced bool
}

// inferredType is an inferred type and the object it was inferred from.
type inferredType struct {
	*kind
	file *manifest.File
	manifest.Position
}

func newLoader(storage *apiserver.Storage, report func(*manifest.Problem)) *loader {
	return &loader{
		storage: storage, reader: manifest.NewReader(report), kinds: map[schema.GroupKind]*kind{},
		origins:  map[object]origin{},
		shadowed: map[object][]*manifest.File{}, filesToReread: map[string]bool{},
		usedTypes:       map[schema.GroupResource]bool{},
		mismatchedFiles: map[schema.GroupKind]map[string]bool{},
	}
}

var definitionKind = schema.GroupKind{Group: crd.GVR.Group, Kind: "CustomResourceDefinition"}

// add stores the object of a document, or retains it until its type is known.
func (l *loader) add(f *manifest.File, e manifest.Entry) {
	if l.addText(f, e) {
		return
	}
	u, err := e.Decode()
	if err != nil {
		l.reader.Problem(f, e.Position, !f.NamedAsArgument, err)
		return
	}
	gvk, err := identify(u)
	if err != nil {
		if !f.NamedAsArgument {
			err = fmt.Errorf("ignored: %w", err)
		}
		l.reader.Problem(f, e.Position, !f.NamedAsArgument, err)
		return
	}
	if gvk.GroupKind() == definitionKind {
		l.addDefinition(f, e, u)
		return
	}
	k, err := l.kindOf(gvk)
	switch {
	case err != nil:
		l.reportMismatch(f, e.Position, gvk.GroupKind(), err)
	case k == nil:
		l.objectsOfUnknownKinds = append(l.objectsOfUnknownKinds, pendingObject{f, cloneEntry(e), gvk,
			u.GetNamespace() != ""})
	case k.inferred && !k.typ.Namespaced && u.GetNamespace() != "":
		// The inferred scope was wrong.
		l.removeKind(k)
		l.storage.RemoveType(k.typ.GroupResource())
		l.objectsOfUnknownKinds = append(l.objectsOfUnknownKinds, pendingObject{f, cloneEntry(e), gvk, true})
	default:
		l.putObject(f, e, k, u)
	}
}

// addText is add without decoding the object. It returns false if the object must be decoded.
func (l *loader) addText(f *manifest.File, e manifest.Entry) bool {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	if l.isServed || err != nil || gv.Version == "" || e.Kind == "" || e.Name == "" ||
		e.Kind == definitionKind.Kind {
		return false
	}
	gvk := gv.WithKind(e.Kind)
	k, err := l.kindOf(gvk)
	if err == nil && k == nil && e.Namespace != "" && f.Path != manifest.Stdin {
		// One namespaced object makes the type namespaced. A later definition can change the type, and
		// standard input could not be read again then.
		first := pendingObject{f, manifest.Entry{Position: e.Position}, gvk, true}
		if i := slices.IndexFunc(l.objectsOfUnknownKinds,
			func(p pendingObject) bool { return p.gvk == gvk }); i >= 0 {
			first = l.objectsOfUnknownKinds[i]
		}
		k, err = l.infer(first, true)
	}
	if err != nil || k == nil || k.typ.Namespaced != (e.Namespace != "") {
		return false
	}
	o := object{k.GroupKind, e.Namespace, e.Name}
	if l.resolveDuplicate(f, e, o) {
		return true
	}
	if _, err := l.storage.RestoreJSON(e.Data); err != nil {
		l.reportMismatch(f, e.Position, k.GroupKind, fmt.Errorf("%s: %w", o, err))
		return true
	}
	l.origins[o] = origin{f, e.Position, f.ReadCount}
	return true
}

// cloneEntry copies the data of an entry, which is valid only while it is read.
func cloneEntry(e manifest.Entry) manifest.Entry {
	e.Data = bytes.Clone(e.Data)
	return e
}

// identify validates the identity of an object and returns its kind.
func identify(u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{},
			fmt.Errorf("%s has the apiVersion %q, which is neither VERSION nor GROUP/VERSION", u.GetKind(),
				u.GetAPIVersion())
	}
	gvk := gv.WithKind(u.GetKind())
	switch name, hasName, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", "name"); {
	case err != nil:
		return gvk, fmt.Errorf("%s has metadata that is not a map", gvk.GroupKind())
	case !hasName || name == nil || name == "":
		return gvk, fmt.Errorf("%s has no metadata.name", gvk.GroupKind())
	case u.GetName() == "":
		return gvk, fmt.Errorf("%s has a metadata.name that is not a string: %v; put it in quotes",
			gvk.GroupKind(), name)
	}
	return gvk, nil
}

// kindOf returns the kind of an object, or nil if it is unknown. It adds built-in kinds, and further versions
// of a kind without a definition, to the storage.
func (l *loader) kindOf(gvk schema.GroupVersionKind) (*kind, error) {
	k := l.kinds[gvk.GroupKind()]
	switch {
	case k != nil && (k.definitionName != "" || k.typ.Version(gvk.Version) != nil):
		return k, nil
	case k != nil:
		return k, l.serveVersion(k, gvk.Version)
	case gvk.GroupKind() == apiServiceKind:
		// The storage has this kind built in.
		t, _ := systemType(l.storage, apiServiceKind)
		l.kinds[apiServiceKind] = &kind{GroupKind: apiServiceKind, typ: t, definitionName: "built in"}
		return l.kinds[apiServiceKind], nil
	}
	t, ok := knownType(gvk)
	if !ok {
		return nil, nil
	}
	return l.setType(t, false)
}

var apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}

func systemType(s *apiserver.Storage, gk schema.GroupKind) (readapi.Type, bool) {
	types, _ := s.ServedTypes()
	i := slices.IndexFunc(types, func(t readapi.Type) bool { return t.GroupKind() == gk })
	if i < 0 {
		return readapi.Type{}, false
	}
	return types[i], true
}

func (l *loader) setType(t readapi.Type, inferred bool) (*kind, error) {
	if err := l.storage.SetType(t); err != nil {
		return nil, err
	}
	k := &kind{GroupKind: t.GroupKind(), typ: t, inferred: inferred}
	l.kinds[k.GroupKind] = k
	l.typesChanged = true
	return k, nil
}

// serveVersion adds a version to a type without a definition. Its conversion is unknown, so objects are
// served only in their own version.
func (l *loader) serveVersion(k *kind, name string) error {
	added := k.typ.Versions[0]
	added.Name = name
	t := k.typ
	t.Converted = true
	t.Versions = append(slices.Clone(t.Versions), added)
	slices.SortFunc(t.Versions, func(a, b readapi.Version) int {
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
	if err := l.storage.SetType(t); err != nil {
		return err
	}
	k.typ, l.typesChanged = t, true
	return nil
}

// putObject writes an object of a known kind.
func (l *loader) putObject(f *manifest.File, e manifest.Entry, k *kind, u *unstructured.Unstructured) {
	o := object{k.GroupKind, u.GetNamespace(), u.GetName()}
	if k.typ.Namespaced && o.namespace == "" {
		o.namespace = "default"
	}
	if l.resolveDuplicate(f, e, o) {
		return
	}
	write := l.storage.Restore
	if l.isServed {
		write = l.storage.Apply
	}
	if _, err := write(u); err != nil {
		l.reportMismatch(f, e.Position, k.GroupKind, fmt.Errorf("%s: %w", o, err))
		return
	}
	l.origins[o] = origin{f, e.Position, f.ReadCount}
}

// reportMismatch reports an object that does not match the type of its kind.
func (l *loader) reportMismatch(f *manifest.File, p manifest.Position, gk schema.GroupKind, err error) {
	if l.mismatchedFiles[gk] == nil {
		l.mismatchedFiles[gk] = map[string]bool{}
	}
	l.mismatchedFiles[gk][f.Path] = true
	l.reader.Problem(f, p, false, err)
}

// markMismatchedFiles marks the files of refused objects to be read again, because the type changed.
func (l *loader) markMismatchedFiles(gk schema.GroupKind) {
	maps.Copy(l.filesToReread, l.mismatchedFiles[gk])
	delete(l.mismatchedFiles, gk)
}

// resolveDuplicate warns about an object that occurs twice. It reports whether the other copy wins: the last
// in the order of files.
func (l *loader) resolveDuplicate(f *manifest.File, e manifest.Entry, o object) bool {
	other, ok := l.origins[o]
	if !ok || other.file == f && other.readCount != f.ReadCount {
		return false
	}
	isLater := other.file.Compare(f) > 0
	counts := "this one is used"
	if isLater {
		counts = "that one is used"
	}
	l.reader.Problem(f, e.Position, true, fmt.Errorf("%s is also at %s:%d; %s", o, other.file.Name(),
		other.Line, counts))
	if other.file == f {
		return false
	}
	ignoredFile := other.file
	if isLater {
		ignoredFile = f
	}
	if !slices.Contains(l.shadowed[o], ignoredFile) {
		l.shadowed[o] = append(l.shadowed[o], ignoredFile)
	}
	return isLater
}

// inferTypes infers types for pending objects after all files are read.
func (l *loader) inferTypes() {
	pending := l.objectsOfUnknownKinds
	l.objectsOfUnknownKinds = nil
	namespaced := map[schema.GroupKind]bool{}
	for _, p := range pending {
		namespaced[p.gvk.GroupKind()] = namespaced[p.gvk.GroupKind()] || p.namespaced
	}
	for _, p := range pending {
		gk := p.gvk.GroupKind()
		k, err := l.kindOf(p.gvk)
		if err == nil && k == nil {
			k, err = l.infer(p, namespaced[gk])
		}
		if err != nil {
			l.reportMismatch(p.file, p.Position, gk, err)
			continue
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(p.Data, &u.Object); err != nil {
			l.reader.Problem(p.file, p.Position, false, err)
			continue
		}
		l.putObject(p.file, p.Entry, k, u)
	}
	l.reportInferredTypes()
}

func (l *loader) infer(p pendingObject, namespaced bool) (*kind, error) {
	t := inferType(p.gvk, namespaced)
	if _, exists := l.kindNamed(t.GroupResource()); exists {
		return nil, fmt.Errorf("no CustomResourceDefinition defines %s, and another kind has its "+
			"inferred resource %s: add its CustomResourceDefinition",
			p.gvk.GroupKind(), t.GroupResource())
	}
	k, err := l.setType(t, true)
	if err != nil {
		return nil, err
	}
	l.unreportedTypes = append(l.unreportedTypes, inferredType{k, p.file, p.Position})
	return k, nil
}

// reportInferredTypes warns about inferred types that are read and have no definition.
func (l *loader) reportInferredTypes() {
	l.unreportedTypes = slices.DeleteFunc(l.unreportedTypes, func(g inferredType) (done bool) {
		gr := g.typ.GroupResource()
		if l.kinds[g.GroupKind] != g.kind || !l.usedTypes[gr] {
			return l.kinds[g.GroupKind] != g.kind
		}
		scope := "cluster-scoped"
		if g.typ.Namespaced {
			scope = "namespaced"
		}
		l.reader.Problem(g.file, g.Position, true, fmt.Errorf(
			"no CustomResourceDefinition defines %s: assuming it is %s and named %s, without short names and columns; "+
				"'kubectl get crd %s -o yaml > crd.yaml' and --from crd.yaml add them", g.GroupKind,
			scope, gr, gr))
		return true
	})
}

func (l *loader) kindNamed(gr schema.GroupResource) (*kind, bool) {
	for _, k := range l.kinds {
		if k.typ.GroupResource() == gr {
			return k, true
		}
	}
	return nil, false
}
