package filesource

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// loader loads the content of files into a storage and records the origin of each object. It is not safe for
// concurrent use.
type loader struct {
	storage *apiserver.Storage
	reader  *manifest.Reader
	clock   *clock

	kinds   map[schema.GroupKind]*kind
	origins map[objectKey]*origin
	// shadowed has the files with an unused copy of an object, deletions those that show its deletion.
	shadowed  map[objectKey][]*manifest.File
	deletions map[objectKey]map[*manifest.File]int
	// mismatchedFiles has the paths of files with objects that do not match the type of their kind. They
	// are read again if the type changes.
	mismatchedFiles       map[schema.GroupKind]map[string]bool
	objectsOfUnknownKinds []pendingObject
	emptyLists            []pendingObject // without data
	// uncollected has the reasons why objects of types are unknown.
	uncollected map[schema.GroupResource][]fileReason
	// shown has the files that show a version of a kind, and their ReadCount.
	shown        map[schema.GroupKind]map[shownIn]int
	paths        []string                // of the sources
	deletedFiles map[*manifest.File]bool // that a refresh has not found
	// filesToReread has the paths of files to read again because types changed.
	filesToReread map[string]bool
	// unreportedTypes are the inferred types that no warning has reported yet.
	unreportedTypes []inferredType
	usedTypes       map[schema.GroupResource]bool // types that are read
	copies          tally                         // that differ
	namespaces      tally                         // of cluster-scoped objects
	report          func(*manifest.Problem)
	names           []discovery.Name              // of the types whose objects are kept; empty for all
	omitted         map[schema.GroupResource]bool // types whose objects are not kept
	// keepsIdentity is set if only the identity of objects is kept.
	keepsIdentity bool
	digested      []byte // scratch of digestOf
	// isServed is set after Open: changes must now be sent to watches.
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

// objectKey identifies an object in one version.
type objectKey struct {
	schema.GroupKind
	namespace, name, version string
}

func (o objectKey) inAnyVersion() objectKey { return objectKey{o.GroupKind, o.namespace, o.name, ""} }

func (o objectKey) String() string {
	if o.namespace == "" {
		return o.Kind + " " + o.name
	}
	return o.Kind + " " + o.namespace + "/" + o.name
}

type origin struct {
	file *manifest.File
	manifest.Position
	readCount int // value of file.ReadCount when it was read
	// isApplied is set if the storage has replaced the object's resource version.
	isApplied       bool
	resourceVersion string
	digest          uint64 // of the whole object, if it is not stored
}

type pendingObject struct {
	file *manifest.File
	manifest.Entry
	gvk        schema.GroupVersionKind
	namespaced bool
}

// inferredType is an inferred type and the position of the object from which it was inferred.
type inferredType struct {
	*kind
	file *manifest.File
	manifest.Position
}

func newLoader(storage *apiserver.Storage, clock *clock, report func(*manifest.Problem)) *loader {
	l := &loader{
		storage: storage, clock: clock, reader: manifest.NewReader(report),
		kinds: map[schema.GroupKind]*kind{}, origins: map[objectKey]*origin{},
		shadowed: map[objectKey][]*manifest.File{}, filesToReread: map[string]bool{},
		deletions:       map[objectKey]map[*manifest.File]int{},
		usedTypes:       map[schema.GroupResource]bool{},
		omitted:         map[schema.GroupResource]bool{},
		shown:           map[schema.GroupKind]map[shownIn]int{},
		mismatchedFiles: map[schema.GroupKind]map[string]bool{},
		report:          report, uncollected: map[schema.GroupResource][]fileReason{},
	}
	l.reader.OnNote = l.note
	return l
}

var crdGroupKind = schema.GroupKind{Group: crd.GVR.Group, Kind: "CustomResourceDefinition"}

// add stores the object of a document, or retains the object until its type is known.
func (l *loader) add(f *manifest.File, e manifest.Entry) {
	if e.Deleted {
		l.deleteRecorded(f, e)
		return
	}
	if !l.keepsIdentity {
		l.clock.read(f, e.Data)
	}
	as := asObject
	if e.Item > 0 {
		as = asList
	}
	l.show(schema.FromAPIVersionAndKind(e.APIVersion, e.Kind), f, e.Position, as)
	if l.addWithoutDecoding(f, e) {
		return
	}
	u, err := e.Decode()
	if err != nil {
		l.reader.NotObject(f, e.Position, err)
		return
	}
	gvk, err := validateIdentity(u)
	if err != nil {
		l.reader.NotObject(f, e.Position, err)
		return
	}
	if gvk.GroupKind() == crdGroupKind {
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
	case l.omits(k):
		l.storage.Skip(u.GetResourceVersion())
	default:
		l.putObject(f, e, k, u)
	}
}

// addWithoutDecoding stores an object as JSON. It returns false if add must decode the object.
func (l *loader) addWithoutDecoding(f *manifest.File, e manifest.Entry) bool {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	if l.isServed || err != nil || gv.Version == "" || e.Canonical == nil || e.Kind == crdGroupKind.Kind {
		return false
	}
	gvk := gv.WithKind(e.Kind)
	k, err := l.kindOf(gvk)
	if err == nil && k == nil && e.Namespace != "" && f.Path != manifest.Stdin {
		// One namespaced object makes the type namespaced. A later definition can change the type, and
		// standard input could not be read again then.
		k, err = l.inferKind(pendingObject{f, manifest.Entry{Position: e.Position}, gvk, true}, true)
	}
	if err != nil || k == nil || k.typ.Namespaced != (e.Namespace != "") {
		return false
	}
	if l.omits(k) {
		l.storage.Skip(e.Canonical.ResourceVersion)
		return true
	}
	key := objectKey{k.GroupKind, e.Namespace, e.Name, gv.Version}
	if l.hasInOtherVersion(k, key) {
		return false
	}
	if l.ignoresCopy(f, e, k, key) {
		return true
	}
	var digest uint64
	if l.keepsIdentity {
		digest = l.digestOf(e, key.namespace)
		e.Canonical.KeepIdentity()
	}
	if !l.storage.RestoreCanonical(e.Canonical) {
		return false
	}
	l.origins[key] = &origin{file: f, Position: e.Position, readCount: f.ReadCount, digest: digest}
	return true
}

var digestSeed = maphash.MakeSeed()

// digestOf returns a hash of an object, without the namespace if files may leave it out or add one.
func (l *loader) digestOf(e manifest.Entry, namespace string) uint64 {
	if namespace != "" && namespace != metav1.NamespaceDefault {
		return maphash.Bytes(digestSeed, e.Data)
	}
	l.digested = jsontext.AppendWithout(l.digested[:0], e.Data, "metadata", "namespace")
	return maphash.Bytes(digestSeed, l.digested)
}

// cloneEntry copies the data of an entry. The original data is valid only until the next entry is read.
func cloneEntry(e manifest.Entry) manifest.Entry {
	e.Data, e.Canonical = bytes.Clone(e.Data), nil
	return e
}

// validateIdentity validates apiVersion and name, and returns the kind.
func validateIdentity(u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
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

// kindOf returns a kind, or nil if it is unknown. It adds built-in kinds to the storage, and further versions
// of kinds without a definition.
func (l *loader) kindOf(gvk schema.GroupVersionKind) (*kind, error) {
	k := l.kinds[gvk.GroupKind()]
	switch {
	case k != nil && (k.definitionName != "" || k.typ.Version(gvk.Version) != nil):
		return k, nil
	case k != nil:
		return k, l.addVersion(k, gvk.Version)
	}
	b, ok := naming.FindBuiltin(gvk.Group, gvk.Kind, "")
	if !ok {
		return nil, nil
	}
	return l.setType(apiserver.BuiltinType(b, gvk.Version), false)
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

// addVersion adds a version to a type without a definition.
func (l *loader) addVersion(k *kind, name string) error {
	newVersion := k.typ.Versions[0]
	newVersion.Name = name
	return l.setVersions(k, append(slices.Clone(k.typ.Versions), newVersion))
}

// setVersions sets the versions of a type without a definition. The conversion is unknown, so objects are
// served only in their own version.
func (l *loader) setVersions(k *kind, versions []readapi.Version) error {
	t := k.typ
	t.Versions, t.NeedsConversion = versions, len(versions) > 1
	slices.SortFunc(t.Versions, func(a, b readapi.Version) int {
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
	if err := l.storage.SetType(t); err != nil {
		return err
	}
	k.typ, l.typesChanged = t, true
	return nil
}

func (l *loader) putObject(f *manifest.File, e manifest.Entry, k *kind, u *unstructured.Unstructured) {
	key := objectKey{k.GroupKind, u.GetNamespace(), u.GetName(), u.GroupVersionKind().Version}
	if k.typ.Namespaced && key.namespace == "" {
		key.namespace = "default"
	}
	if !k.typ.Namespaced && key.namespace != "" { // kustomize sets it
		key.namespace = ""
		l.namespaces.add(key.String(), &manifest.Problem{File: f.Name(), Position: e.Position, Warning: true,
			Err: fmt.Errorf("%s is cluster-scoped: its namespace is ignored", key)})
	}
	if l.ignoresCopy(f, e, k, key) {
		return
	}
	var err error
	switch prefersOther, replaced := l.prefersOtherVersion(f, e, k, key); {
	case replaced:
		return
	case prefersOther:
		_, err = l.storage.PutInVersion(u, !l.isServed)
	case l.isServed:
		_, err = l.storage.Apply(u)
	default:
		_, err = l.storage.Restore(u)
	}
	if err != nil {
		l.reportMismatch(f, e.Position, k.GroupKind, fmt.Errorf("%s: %w", key, err))
		return
	}
	l.origins[key] = &origin{file: f, Position: e.Position, readCount: f.ReadCount, isApplied: l.isServed,
		resourceVersion: u.GetResourceVersion()}
}

func (l *loader) reportMismatch(f *manifest.File, p manifest.Position, gk schema.GroupKind, err error) {
	l.markMismatched(gk, f)
	l.reader.Problem(f, p, false, err)
}

func (l *loader) markMismatched(gk schema.GroupKind, f *manifest.File) {
	if l.mismatchedFiles[gk] == nil {
		l.mismatchedFiles[gk] = map[string]bool{}
	}
	l.mismatchedFiles[gk][f.Path] = true
}

// markMismatchedFiles marks files to be read again after the type of a kind has changed.
func (l *loader) markMismatchedFiles(gk schema.GroupKind) {
	maps.Copy(l.filesToReread, l.mismatchedFiles[gk])
	delete(l.mismatchedFiles, gk)
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
			k, err = l.inferKind(p, namespaced[gk])
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
	for _, p := range l.emptyLists {
		if k, err := l.kindOf(p.gvk); err == nil && k == nil {
			_, err = l.inferKind(p, p.namespaced)
			_ = err // another kind has its name, and objects
		}
	}
	l.emptyLists = nil
	l.reportInferredTypes()
}

func (l *loader) inferKind(p pendingObject, namespaced bool) (*kind, error) {
	t := readapi.Type{Group: p.gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: naming.GuessPlural(p.gvk.Kind), Kind: p.gvk.Kind},
		Versions: []readapi.Version{{Name: p.gvk.Version}}}
	if l.storage.Collection(t.GroupResource()) != nil {
		return nil, fmt.Errorf("no CustomResourceDefinition defines %s, and another kind has its "+
			"inferred resource %s: add its CustomResourceDefinition", p.gvk.GroupKind(), t.GroupResource())
	}
	k, err := l.setType(t, true)
	if err != nil {
		return nil, err
	}
	l.unreportedTypes = append(l.unreportedTypes, inferredType{k, p.file, p.Position})
	return k, nil
}

// isGone reports whether a file was deleted, or was read again without errors after the readCount-th time.
func (l *loader) isGone(f *manifest.File, readCount int) bool {
	return l.deletedFiles[f] || readCount != f.ReadCount && !f.HadErrors
}

// reportInferredTypes warns about inferred types that are read and still have no definition.
func (l *loader) reportInferredTypes() {
	l.unreportedTypes = slices.DeleteFunc(l.unreportedTypes, func(inferred inferredType) (isDone bool) {
		gr := inferred.typ.GroupResource()
		if l.kinds[inferred.GroupKind] != inferred.kind || !l.usedTypes[gr] {
			return l.kinds[inferred.GroupKind] != inferred.kind
		}
		scope := "cluster-scoped"
		if inferred.typ.Namespaced {
			scope = "namespaced"
		}
		l.reader.Problem(inferred.file, inferred.Position, true, fmt.Errorf(
			"no CustomResourceDefinition defines %s: assuming it is %s and named %s, without short names and columns; "+
				"'kubectl get crd %s -o yaml > crd.yaml' and --from crd.yaml add them", inferred.GroupKind,
			scope, gr, gr))
		return true
	})
}
