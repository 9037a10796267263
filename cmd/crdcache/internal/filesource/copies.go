package filesource

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// ignoresCopy reports whether another file, or an earlier document of this one, has the object in the same
// version and is used, or a later file shows its deletion. Identical copies are not reported. Otherwise the
// highest resource version of one UID is used, or else the last copy in the order of files.
func (l *loader) ignoresCopy(f *manifest.File, e manifest.Entry, k *kind, key objectKey) bool {
	for later, readCount := range l.deletions[key.inAnyVersion()] {
		if f.Compare(later) < 0 && !l.isGone(later, readCount) {
			l.shadow(key.inAnyVersion(), f)
			return true
		}
	}
	other, exists := l.origins[key]
	if !exists {
		return false
	}
	compared := l.compare(e, k, key)
	if other.file == f && other.readCount != f.ReadCount {
		if !compared.isSame { // the copies may be newer now
			l.rereadCopies(key)
		}
		return false
	}
	otherIsUsed := compared.isSame || cmp.Or(compared.order, f.Compare(other.file)) < 0
	if !compared.isSame && !e.Recorded {
		l.addCopy(key, f, e.Position, other, otherIsUsed)
	}
	if other.file == f {
		return otherIsUsed
	}
	unused := other.file
	if otherIsUsed {
		unused = f
	}
	l.shadow(key, unused)
	return otherIsUsed
}

func (l *loader) shadow(key objectKey, unused *manifest.File) {
	if !slices.Contains(l.shadowed[key], unused) {
		l.shadowed[key] = append(l.shadowed[key], unused)
	}
}

func (l *loader) rereadCopies(key objectKey) {
	for _, f := range l.shadowed[key] {
		l.filesToReread[f.Path] = true
	}
	delete(l.shadowed, key)
}

// comparison compares an object with a stored one. order is positive if the object is newer, and zero if that
// is unknown. isSameState is set if both have one UID and resource version, isSame if the content is equal.
type comparison struct {
	isSame, isSameState bool
	order               int
}

func (l *loader) compare(e manifest.Entry, k *kind, key objectKey) (c comparison) {
	u, err := e.Decode()
	old := l.storedObject(k, key)
	if err != nil || old == nil {
		return c
	}
	version, oldVersion := u.GetResourceVersion(), old.GetResourceVersion()
	hasOneUID := u.GetUID() != "" && u.GetUID() == old.GetUID()
	switch {
	case hasOneUID && naming.IsOlder(oldVersion, version):
		c.order = 1
	case hasOneUID && naming.IsOlder(version, oldVersion):
		c.order = -1
	}
	c.isSameState = hasOneUID && version == oldVersion && version != ""
	// The storage has added these fields, or removed them.
	delete(u.Object, "apiVersion")
	if u.GetNamespace() == "" || !k.typ.Namespaced {
		old.SetNamespace(u.GetNamespace())
	}
	if version == "" {
		old.SetResourceVersion("")
	}
	if status, _ := u.Object["status"].(map[string]any); k.GroupKind == crdGroupKind && status["conditions"] == nil {
		delete(u.Object, "status")
		delete(old.Object, "status")
	}
	if digest := l.origins[key].digest; digest != 0 {
		c.isSame = digest == l.digestOf(e, key.namespace)
	} else {
		c.isSame = reflect.DeepEqual(u.Object, old.Object)
	}
	return c
}

// storedObject returns the stored object of a key with the resource version of its file, or nil.
func (l *loader) storedObject(k *kind, key objectKey) *unstructured.Unstructured {
	stored := l.storage.Object(k.typ.GroupResource(), key.namespace, key.name, key.version)
	if stored == nil {
		return nil
	}
	content, err := readapi.Decode(stored)
	if err != nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: content}
	if from := l.origins[key]; from.isApplied {
		u.SetResourceVersion(from.resourceVersion)
	}
	return u
}

// hasInOtherVersion reports whether the files have the object in another version, too.
func (l *loader) hasInOtherVersion(k *kind, key objectKey) bool {
	return slices.ContainsFunc(k.typ.Versions, func(v readapi.Version) bool {
		other := key
		other.version = v.Name
		return v.Name != key.version && l.origins[other] != nil
	})
}

// prefersOtherVersion reports whether the object in another version is used by commands that name no version:
// that with the highest resource version of one UID, or else the last one in the order of files. Only
// the last state in a recording is used: replaced is set if it is the other one, which is removed otherwise.
func (l *loader) prefersOtherVersion(f *manifest.File, e manifest.Entry, k *kind,
	key objectKey) (prefers, replaced bool) {
	for i, v := range k.typ.Versions {
		other := key
		other.version = v.Name
		from, exists := l.origins[other]
		if !exists || other == key || l.isGone(from.file, from.readCount) {
			continue
		}
		compared := l.compare(e, k, other)
		isOlder := cmp.Or(compared.order, f.Compare(from.file)) < 0
		if compared.isSameState { // the preferred version is used
			isOlder = i < slices.IndexFunc(k.typ.Versions,
				func(v readapi.Version) bool { return v.Name == key.version })
		} else if !e.Recorded {
			l.addCopy(key, f, e.Position, from, isOlder)
		} else if replaced = isOlder; !isOlder {
			l.shadow(key, from.file)
			delete(l.origins, other)
			l.storage.DeleteInVersion(k.typ.GroupResource(), other.namespace, other.name, other.version)
		}
		if isOlder {
			return true, replaced
		}
	}
	return false, false
}

// addCopy counts a copy that differs.
func (l *loader) addCopy(key objectKey, f *manifest.File, p manifest.Position, other *origin,
	usesOther bool) {
	usage, unused := "this one is used", other.file.Location(other.Position)
	if usesOther {
		usage, unused = "that one is used", f.Location(p)
	}
	l.copies.add(fmt.Sprint(key, unused), &manifest.Problem{File: f.Name(), Position: p, Warning: true,
		Err: fmt.Errorf("%s is also at %s; %s", key, other.file.Location(other.Position), usage)})
}

// tally counts different problems of one kind since the last report.
type tally struct {
	seen  map[string]bool
	first *manifest.Problem
}

func (t *tally) add(id string, p *manifest.Problem) {
	if t.first == nil {
		*t = tally{map[string]bool{}, p}
	}
	t.seen[id] = true
}

// report reports the first problem, with the number of all if there are several.
func (t *tally) report(report func(*manifest.Problem), all string) {
	if n := len(t.seen); n > 1 {
		t.first.Err = fmt.Errorf("%w; %d %s", t.first.Err, n, all)
	}
	if t.first != nil {
		report(t.first)
	}
	*t = tally{}
}
